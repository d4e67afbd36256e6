"""Public headers, as Doxygen reads them.

A staged header is a copy with other comments: the first line becomes the file's description, as do remarks between
declarations. A comment is repeated at each declaration that it covers. Declarations for the library itself are left out.
"""
import re
import tomllib
from pathlib import Path

# Roots of all headers that users reach: components, and a header with requirements of its own.
UMBRELLAS = ["reel.h", "onnx.h", "distributed.h"]
ALONE = ["frontend/xtensor.h"]

# A comment that begins with a verb in the plural covers all declarations up to a blank line or the next comment. Any other
# comment covers the declaration behind it, and directly following overloads of it.
PLURALS = {"Add", "Assign", "Compare", "Divide", "Draw", "Implement", "Make", "Print", "Read", "Remove", "Return", "Round", "Select",
           "Set", "Split", "Store", "Take", "Write"}


class Subjects:
    """The file subjects.toml."""

    def __init__(self, root: Path) -> None:
        data = tomllib.loads((root / "docs/site/subjects.toml").read_text())
        self.internal_names: list[str] = data["internal"]["names"]
        self.list: list[dict] = data["subject"]
        self.of_header = {header: subject for subject in self.list for header in subject["headers"]}
        named = set(data["internal"]["headers"]) | set(self.of_header)
        reached = reachable_headers(root)
        if missing := reached - named:
            raise SystemExit(f"docs/site/subjects.toml lacks headers that users reach: {sorted(missing)}")
        if unknown := named - reached:
            raise SystemExit(f"docs/site/subjects.toml names headers that users do not reach: {sorted(unknown)}")


def reachable_headers(root: Path) -> set[str]:
    """Returns the paths of the headers that users include, or reach through them."""
    reached: set[str] = set(ALONE)
    open_headers = UMBRELLAS.copy()
    while open_headers:
        header = open_headers.pop()
        if header in reached:
            continue
        reached.add(header)
        open_headers += re.findall(r'^#include "reel/(.*)"', (root / header).read_text(), re.M)
    return reached


def escape(text: str) -> str:
    """Returns plain text such that Doxygen shows it as it is."""
    return re.sub(r"([\\@<>&#$%*])", r"\\\1", text)


def linked(text: str, links: dict[str, str]) -> str:
    """Returns plain text as Doxygen's Markdown, with links from names of members and of errors. Other names are words, too."""
    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({links[match[0]]})" if match[0] in links else match[0]
    return re.sub(r"(?<![\w:])[A-Z]\w*(?:(?:::\w+)+|Error)(?!\w|::)", link, escape(text))


def markup(lines: list[str], links: dict[str, str]) -> list[str]:
    """Returns the lines of a comment as Doxygen's Markdown. Indented lines become a block of code."""
    result: list[str] = []
    in_code = False
    for line in lines:
        is_code = bool(re.match(r" {2,}\S", line)) and (in_code or not result or not result[-1].strip())
        if in_code and not is_code and line.strip():
            while result and not result[-1].strip():
                result.pop()
            result += ["~~~", ""]
            in_code = False
        if is_code and not in_code:
            result += ["", "~~~{.cpp}"]
            in_code = True
        if in_code:
            result.append(line[2:])
            continue
        # A line that describes an argument, or that gives the result, begins a paragraph.
        ends = not result or not result[-1] or result[-1][-1] in ".;:"
        if (ends or line.startswith("  ")) and re.match(r"(\.?[a-z_]\w*(, \.?\w+)*: |Throws |Source: |Cost: |Memory: |  -> )", line):
            result.append("")
        result.append(linked(line, links))
    if in_code:
        result += ["~~~", ""]
    return result


class Scanner:
    """Follows braces and parentheses, to find the lines at which a declaration of a namespace or a class begins."""

    def __init__(self) -> None:
        self.scopes = ["namespace"]
        self.parentheses = 0
        self.pending = ""

    def at_declaration(self) -> bool:
        return self.scopes[-1] != "body" and not self.pending.strip() and self.parentheses == 0

    def feed(self, line: str) -> None:
        line = re.sub(r"//.*", "", re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])\'', '""', line))
        if line.startswith("#"):
            return
        for at, c in enumerate(line):
            if c in "([":
                self.parentheses += 1
            elif c in ")]":
                self.parentheses -= 1
            elif c == "{":
                head = re.sub(r"template\s*<[^{]*>", "", self.pending)
                kind = re.search(r"\b(namespace|class|struct|enum|union)\b(?![^{]*\()", head)
                is_scope = self.scopes[-1] != "body" and self.parentheses == 0 and kind and "=" not in head
                self.scopes.append(("class" if kind[1] != "namespace" else "namespace") if is_scope else "body")
                self.pending = "" if is_scope else self.pending + c
                continue
            elif c == "}":
                was = self.scopes.pop()
                rest = line[at + 1:].lstrip()
                if self.scopes[-1] != "body" and self.parentheses == 0 and (was != "body" or rest[:1] not in (",", "{", ".", "(", ")")):
                    self.pending = ""
                continue
            elif c == ";" and self.scopes[-1] != "body" and self.parentheses == 0:
                self.pending = ""
                continue
            elif c == ":" and re.fullmatch(r"\s*(public|private|protected)", self.pending):
                self.pending = ""
                continue
            self.pending += c
        self.pending += "\n" if self.pending.strip() else ""


def declared_name(text: str) -> str:
    """Returns the name of the function that a declaration begins with; empty for other declarations."""
    text = re.sub(r"\[\[.*?\]\]", "", text)
    while found := re.match(r"\s*(template\s*<|requires\s*\()", text):  # may be nested
        depth, at = 0, found.end() - 1
        opening = text[at]
        for at in range(at, len(text)):
            depth += (text[at] in "<(") - (text[at] in ">)")
            if depth == 0:
                break
        text = text[at + 1:]
        if opening == "(" and (more := re.match(r"\s*(&&|\|\|)", text)):
            text = "requires (" + text[more.end():].lstrip().removeprefix("(")
    found = re.search(r"(operator\s*(\(\)|[^\w\s(]{1,3})|\b(?!decltype|alignas|noexcept|requires|explicit)\w+)\s*\(", text)
    return found[1] if found else ""


def declaration_text(lines: list[str], at: int) -> str:
    """Returns the declaration that begins at a line, up to its end or body."""
    text = ""
    for line in lines[at:at + 12]:
        text += re.sub(r"//.*", "", line) + "\n"
        if re.search(r"[;{]\s*$", text):
            break
    return text


def head_of(lines: list[str]) -> list[str]:
    """Removes the comment at the beginning of a header, and returns its text without the path."""
    text: list[str] = []
    while lines and lines[0].startswith("//"):
        text.append(lines.pop(0)[2:].removeprefix(" "))
    text[0] = re.sub(r"^\S+ — ", "", text[0])
    if not re.match(r"[A-Za-z]+[a-z][A-Z]|\w+[:_(,]", text[0]):  # not the name of a function or a type
        text[0] = text[0][:1].upper() + text[0][1:]
    return text


def description(root: Path, header: str, links: dict[str, str]) -> list[str]:
    """Returns the purpose of a header and its remarks between declarations, for the page of its subject."""
    lines = (root / header).read_text().splitlines()
    head = head_of(lines)
    end = head.index("") if "" in head else len(head)
    purpose, rest = " ".join(head[:end]), head[end:]
    remarks: list[str] = []
    previous = ""
    for line in lines:
        if re.match(r"//( |$)", line) and "Below: for the library" not in line:
            remarks += [] if previous.startswith("//") else [""]
            remarks.append(line[2:].removeprefix(" "))
        previous = line
    return [f"**{escape(purpose)}** <code>reel/{header}</code>", "", *markup(rest, links), "", *markup(remarks, links)]


def staged(root: Path, header: str, subject: str, links: dict[str, str]) -> str:
    """Returns the text of a header for Doxygen, as a part of the page of its subject."""
    lines = (root / header).read_text().splitlines()
    purpose = " ".join(head_of(lines))
    scanner = Scanner()
    result: list[str] = []
    comment: list[str] = []   # the last comment, and the declarations that it may still cover
    indent, name, hidden = "", "", 0
    at = 0
    while at < len(lines):
        line = lines[at]
        stripped = line.strip()
        if stripped in ("REEL_API_BEGIN", "REEL_API_END"):  # no declarations, which Doxygen takes them for
            at += 1
            continue
        if hidden and scanner.at_declaration() and (len(scanner.scopes) < hidden or stripped in ("private:", "};") or
                                                    stripped.startswith("}  // namespace")):
            result.append("/// \\endcond")
            hidden = 0
        if not stripped:
            comment, name = [], ""
        if scanner.at_declaration() and stripped.startswith("///") and not stripped.startswith("///<"):
            block = []
            while re.match(r"\s*///(?!<)", lines[at]):
                block.append(lines[at].strip()[3:].removeprefix(" "))
                at += 1
            indent = re.match(r"\s*", lines[at])[0]
            result += [f"{indent}/// {text}".rstrip() for text in markup(block, links)]
            comment, name = block, ""
            continue
        if stripped.startswith("// Below: for the library itself."):
            result.append("/// \\cond")
            hidden = len(scanner.scopes)
        elif scanner.at_declaration() and re.match(r"//(?!/)", stripped):
            comment, name = [], ""
        elif scanner.at_declaration() and stripped and comment:
            declared = declared_name(declaration_text(lines, at))
            plural = re.match(r"\w+", comment[0])
            if not name:
                name = declared or "-"
            elif declared and (declared == name or (plural and plural[0] in PLURALS)):
                result += [f"{indent}/// {text}".rstrip() for text in markup(comment, links)]
        if stripped == "}  // namespace reel":
            result.append("/// @}")
        scanner.feed(line)
        result.append(line)
        if stripped == "namespace reel {":
            result += [f"/// \\addtogroup {subject}", "/// @{"]
        at += 1
    return "\n".join([f"/// \\file reel/{header}", f"/// \\brief {escape(purpose)}", "", *result]) + "\n"
