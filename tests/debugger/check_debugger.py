"""Stops a program at each call of stop() and compares what a debugger prints with the comments above the call.

python3 check_debugger.py MODE DEBUGGER PROGRAM SOURCE PRINTERS

    //= NAME TEXT      print NAME shows the text
    //~ NAME PATTERN   ... text that matches a regular expression
    //| TEXT           its next line
    //~ frame PATTERN  gdb's line of the frame has text that matches

MODE: gdb or lldb; core: gdb on a core file; stripped: gdb on a program without debug information.
"""

import glob
import os
import platform
import re
import subprocess
import sys
import tempfile

MARK = "==== "


def read_stops(source):
    """Returns (line, [(name, text, is_pattern)]) for each call of stop()."""
    stops, expected = [], []
    for number, line in enumerate(open(source), 1):
        if found := re.match(r" *//([=~]) (\S+) ?(.*)$", line):
            expected.append([found[2], found[3], found[1] == "~"])
        elif found := re.match(r" *//\| ?(.*)$", line):
            expected[-1][1] += "\n" + found[1]
        elif re.match(r" *stop\(", line):
            stops.append((number, expected))
            expected = []
    return stops


def run(debugger, option, commands, program, **more):
    arguments = [debugger] + (["-nx", "-batch"] if option == "-ex" else ["--no-lldbinit", "--batch"])
    for command in commands:
        arguments += [option, command]
    done = subprocess.run(arguments + program, capture_output=True, text=True, timeout=600, **more)
    if re.search("ptrace: Operation not permitted|Could not trace the inferior|personality set failed", done.stderr):
        print("SKIPPED: this system does not let a debugger run programs")
        sys.exit(0)
    return done


def gdb_commands(printers):
    return ["set pagination off", "set width 0", "set confirm off", "set debuginfod enabled off", "source " + printers]


def gdb_run(debugger, program, source, printers, stops):
    commands = gdb_commands(printers)
    commands += ["break %s:%d" % (os.path.basename(source), line) for line, _ in stops] + ["run"]
    for line, values in stops:
        for name, _, _ in values:
            commands += ["echo \\n%s%d %s\\n" % (MARK, line, name), "frame" if name == "frame" else "print " + name]
        commands += ["continue"]
    return run(debugger, "-ex", commands, [program])


def lldb_run(debugger, program, source, printers, stops):
    commands = ["settings set auto-confirm true", "command script import " + printers]
    commands += ["breakpoint set -f %s -l %d" % (os.path.basename(source), line) for line, _ in stops] + ["run"]
    for line, values in stops:
        for name, _, _ in values:
            commands += ["script print('\\n%s%d %s')" % (MARK, line, name), "script lldb.debugger.HandleCommand('frame variable %s')" % name]
        commands += ["continue"]
    # Debian 12's lldb looks for its module in a folder that its packages do not have.
    folders = glob.glob("/usr/lib/llvm-*/lib/python3.*/dist-packages") + ["/usr/lib/python3/dist-packages"]
    return run(debugger, "-o", commands, [program], env={**os.environ, "PYTHONPATH": ":".join(folders)})


def core_run(debugger, program, source, printers, stops):
    """The values of the first stop, read from a core file."""
    line, values = stops[0]
    with tempfile.TemporaryDirectory() as folder:
        core = os.path.join(folder, "core")
        commands = ["break %s:%d" % (os.path.basename(source), line), "run", "generate-core-file " + core, "kill"]
        run(debugger, "-ex", gdb_commands(printers) + commands, [program])
        commands = gdb_commands(printers)
        for name, _, _ in values:
            commands += ["echo \\n%s%d %s\\n" % (MARK, line, name), "print " + name]
        return run(debugger, "-ex", commands, [program, core])


def stripped_run(debugger, program, printers):
    """The tensor that main passes to stop_at(), by its address."""
    register = "$x0" if platform.machine() == "aarch64" else "$rdi"
    with tempfile.TemporaryDirectory() as folder:
        bare = os.path.join(folder, "bare")
        subprocess.run(["objcopy", "--strip-debug", program, bare], check=True)
        commands = gdb_commands(printers) + ["break *stop_at", "run", "reel Tensor " + register]
        return run(debugger, "-ex", commands, [bare])


def printed(output):
    """Returns the printed text by line and name."""
    texts = {}
    for block in output.split("\n" + MARK)[1:]:
        head, _, rest = block.partition("\n")
        texts[head] = rest
    return texts


def is_shown(text, is_pattern, name, shown):
    lldb = r"^\(lldb\) script .*\n\([^()]*(\([^()]*\)[^()]*)*\) %s = " % re.escape(name)
    shown = re.sub(r"^\$\d+ = (\(.*?\) @0x[0-9a-f]+: )?|" + lldb, "", shown)
    return re.match((text if is_pattern else re.escape(text)) + r" *\n", shown + "\n")


def main():
    mode, debugger, program, source, printers = sys.argv[1:]
    if mode == "stripped":
        done = stripped_run(debugger, program, printers)
        if "\nf32[2] [7. 8.]\n" in done.stdout:
            return 0
        print(done.stdout[-2000:], done.stderr[-2000:])
        return 1
    stops = read_stops(source)
    if mode != "gdb":
        stops = [(line, [value for value in values if value[0] != "frame"]) for line, values in stops]
    done = {"gdb": gdb_run, "lldb": lldb_run, "core": core_run}[mode](debugger, program, source, printers, stops)
    texts = printed(done.stdout)
    failures = removed = 0
    stops = stops[:1] if mode == "core" else stops
    for line, values in stops:
        for name, text, is_pattern in values:
            shown = texts.get("%d %s" % (line, name), "(not reached)")
            if re.search("<optimized out>|no variable named|^\n*No symbol|^\(lldb\) script .*\n\(lldb\)", shown):
                removed += 1  # by the compiler
            elif not is_shown(text, is_pattern, name, shown):
                failures += 1
                print("line %d: %s\n  expected: %s\n  printed:  %s" % (line, name, text, shown[:600].rstrip()))
    if failures:
        print(done.stderr[-2000:])
    count = sum(len(values) for _, values in stops)
    print("%d of %d values differ, the compiler removed %d" % (failures, count, removed))
    return failures > 0 or 5 * removed >= count


sys.exit(main())
