#!/usr/bin/env python3
"""Builds the site: stages headers and pages, and runs Doxygen on them twice.

The first run lists the public names, as XML, for links in pages and for the index of functions. The second one makes the site.
Usage: build.py ROOT OUTPUT. Writes OUTPUT/html/index.html. An error if a public name has no contract, if
Doxygen warns, or if a link leads nowhere.
"""
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.dont_write_bytecode = True
import check  # noqa: E402
import functions  # noqa: E402
import headers  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402
import search_words  # noqa: E402
import tables  # noqa: E402


class Site:
    def __init__(self, root: Path, output: Path) -> None:
        self.root, self.output, self.staged = root, output, output / "staged"
        self.subjects = headers.Subjects(root)
        shutil.rmtree(output, ignore_errors=True)

    def stage(self, path: str, text: str) -> None:
        (self.staged / path).parent.mkdir(parents=True, exist_ok=True)
        (self.staged / path).write_text(text)

    def stage_headers(self, links: dict[str, str]) -> list[str]:
        """Writes the headers and the subjects. Returns their paths. links: the places of public names in the site."""
        for header, subject in self.subjects.of_header.items():
            self.stage(f"reel/{header}", headers.staged(self.root, header, subject["id"], links))
        groups = []
        for subject in self.subjects.list:
            lines = [f"\\defgroup {subject['id']} {subject['title']}", "\\details"]
            for header in subject["headers"]:
                lines += [*headers.description(self.root, header, links), ""]
            groups.append("\n".join(f"/// {line}".rstrip() for line in lines))
        self.stage("groups.dox", "\n\n".join(groups) + "\n")
        self.stage("namespace.dox", "/// \\namespace reel\n/// \\brief All public names of Reel.\n")
        return ["namespace.dox", "groups.dox", *(f"reel/{header}" for header in self.subjects.of_header)]

    def stage_pages(self, names: list[reference.Name], links: dict[str, str]) -> list[str]:
        """Writes the pages and the index of functions. Returns their paths."""
        self.stager = stager = pages.Stager(self.root, self.subjects, links)
        paths = pages.pages(self.root)
        for page in paths:
            self.stage(page, stager.staged(page))
        if stager.broken:
            raise SystemExit("\n".join(["links of pages that lead nowhere:", *stager.broken]))
        self.stage(pages.MADE, functions.page(names, self.subjects.list))
        return [*paths, pages.MADE]

    def run_doxygen(self, inputs: list[str], options: list[str]) -> None:
        """Runs Doxygen. Ends the program with its warnings, if there are any."""
        site, pictures = self.root / "docs/site", sorted((self.root / "docs/pictures").iterdir())
        options = [
            (site / "Doxyfile").read_text(),
            "INPUT = " + " ".join(f'"{self.staged / i}"' for i in inputs),
            f'OUTPUT_DIRECTORY = "{self.output}"',
            f'STRIP_FROM_PATH = "{self.staged}"',
            f'STRIP_FROM_INC_PATH = "{self.staged}"',
            "HTML_EXTRA_FILES = " + " ".join(f'"{p}"' for p in pictures),
            f'HTML_EXTRA_STYLESHEET = "{site}/style.css"',
            f'LAYOUT_FILE = "{site}/layout.xml"',
            f'USE_MDFILE_AS_MAINPAGE = "{self.staged}/README.md"',
            "EXCLUDE_SYMBOLS += " + " ".join(f"reel::{name}" for name in self.subjects.internal_names),
            *options]
        warnings = self.output / "warnings.txt"
        subprocess.run(["doxygen", "-"], input="\n".join(options), text=True, cwd=self.output, check=True)
        if text := warnings.read_text():
            raise SystemExit(text.replace(f"{self.staged}/", ""))


def main() -> None:
    site = Site(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
    inputs = site.stage_headers({})
    site.run_doxygen(inputs, ["GENERATE_XML = YES", "GENERATE_HTML = NO"])
    names = reference.read(site.output / "xml", site.subjects.list, site.subjects.internal_names)
    if lacking := reference.without_contract(names):
        raise SystemExit("\n".join(["public names without a contract (a comment in the header):",
                                    *(f"  {n.kind} {n.name}{n.arguments}, {n.subject}" for n in lacking)]))
    if wrong := tables.unknown_names(site.root, names) + tables.repeated_rows(site.root):
        raise SystemExit("\n".join(wrong))
    links = {n.name: n.link() for n in names if n.text}
    site.stage_headers(links)
    inputs += site.stage_pages(names, links)
    site.run_doxygen(inputs, ["GENERATE_HTML = YES", "HTML_OUTPUT = html"])
    check.drop_links_to_private_classes(site.output / "html")
    search_words.add(site.root, site.stager, site.output / "html")
    if found := check.faults(site.output / "html"):
        raise SystemExit("\n".join(found))


main()
