"""Pages of docs/ and of the root, as Doxygen reads them.

Headings get the anchors that other pages link to, and links between pages become links in the site. A link to a file that
the site lacks becomes plain text.
"""
import os
import re
from pathlib import Path

from headers import Subjects

ROOT_PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"]
# Pages about the site itself.
LEFT_OUT = re.compile(r"docs/site/.*")
# A page that functions.py makes.
MADE = "docs/functions.md"


def pages(root: Path) -> list[str]:
    """Returns the paths of the pages in the site."""
    found = [path.relative_to(root).as_posix() for path in sorted((root / "docs").rglob("*.md"))]
    return ROOT_PAGES + [path for path in found if not LEFT_OUT.fullmatch(path)]


def page_id(path: str) -> str:
    """Returns Doxygen's name for a page: start_loops for docs/start/loops.md."""
    special = {"README.md": "mainpage", "docs/README.md": "docs", "examples/README.md": "example_programs"}
    if path in special:
        return special[path]
    return re.sub(r"\W", "_", path.removeprefix("docs/").removesuffix(".md").removesuffix("/README")).lower()


def slug(heading: str) -> str:
    """Returns the anchor that GitHub gives to a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


class Stager:
    """Stages pages, and collects the links that lead nowhere."""

    def __init__(self, root: Path, subjects: Subjects, names: dict[str, str]) -> None:
        """names: the reference of each public name that code in quotes may link to."""
        self.root = root
        self.subjects = subjects
        self.names = names
        self.pages = set(pages(root))
        self.broken: list[str] = []
        self.anchors = {page: {slug(h) for h in self.headings(page)} for page in self.pages}

    def headings(self, page: str) -> list[str]:
        text = re.sub(r"^```.*?^```", "", (self.root / page).read_text(), flags=re.M | re.S)
        return re.findall(r"^#+ (.*)$", text, re.M)

    def target(self, page: str, link: str) -> str | None:
        """Returns the place of a link in the site; None if the site lacks it."""
        if re.match(r"[a-z]+:", link):
            return link
        path, _, anchor = link.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if file in self.subjects.of_header:
            return f"group__{self.subjects.of_header[file]['id']}.html"
        if not (self.root / file).exists():
            self.broken.append(f"{page}: there is no {file}")
        elif file in self.pages and anchor and anchor not in self.anchors[file]:
            self.broken.append(f"{page}: {file} has no heading #{anchor}")
        if file not in self.pages:
            return None
        html = "index" if file == "README.md" else page_id(file)
        return f"{html}.html#{page_id(file)}-{anchor}" if anchor else f"{html}.html"

    def code(self, text: str) -> str:
        """Returns code in quotes, with a link if it is a public name."""
        name = re.fullmatch(r"(?:reel::)?([A-Za-z_][\w:]*?)(?:\([\w, .]*\))?", text)
        # name(): a member of some class, rather than the function of that name.
        is_member = text.endswith("()") and any(n.endswith("::" + text[:-2]) for n in self.names)
        if name and name[1] in self.names and not is_member:
            return f"[{_code(text)}]({self.names[name[1]]})"
        return _code(text)

    def inline(self, page: str, text: str, links_names: bool = True) -> str:
        """Returns a line outside of code, with Doxygen's links and escapes."""
        kept: list[str] = []

        def keep(markup: str) -> str:
            kept.append(markup)
            return f"\0{len(kept) - 1}\0"

        def link(match: re.Match[str]) -> str:
            target = self.target(page, match[2])
            label = re.sub(r"`([^`]*)`", lambda m: _code(m[1]), match[1])
            return keep(f"[{label}]({target})" if target else label)

        def image(match: re.Match[str]) -> str:
            return keep(f"<img src=\"{os.path.basename(match[2])}\" alt=\"{match[1]}\">")

        text = re.sub(r"!\[([^]]*)\]\(([^)]*)\)", image, text)
        text = re.sub(r"\[((?:[^][]|`[^`]*`)*)\]\(([^)\s]*)\)", link, text)
        text = re.sub(r"`([^`]+)`", lambda m: keep(self.code(m[1]) if links_names else _code(m[1])), text)
        text = re.sub(r"([\\@<>&#$%])", r"\\\1", text)
        while "\0" in text:
            text = re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], text)
        return text

    def staged(self, page: str) -> str:
        """Returns the text of a page for Doxygen."""
        result: list[str] = []
        paragraph: list[str] = []   # code in quotes may run over the end of a line

        def flush() -> None:
            if paragraph:
                result.extend(self.inline(page, "\n".join(paragraph)).split("\n"))
                paragraph.clear()

        in_code = False
        for line in (self.root / page).read_text().splitlines():
            if line.lstrip().startswith("```"):
                flush()
                in_code = not in_code
                language = line.strip().removeprefix("```")
                indent = re.match(r"\s*", line)[0]
                result.append(indent + ("~~~{." + ("cpp" if language == "cpp" else "unparsed") + "}" if in_code else "~~~"))
                continue
            heading = re.match(r"(#+) (.*)", line)
            if in_code:
                result.append(line)
            elif heading:
                flush()
                own = page_id(page) if len(heading[1]) == 1 else f"{page_id(page)}-{slug(heading[2])}"
                title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[2]).replace("`", "")
                result.append(f"{heading[1]} {_escape_heading(title)} {{#{own}}}")
            elif not line.strip() or line.startswith("|"):
                flush()
                if line.startswith("|") and page.startswith("docs/coming_from/"):
                    theirs, rest = line.split(" | ", 1)  # names of other frameworks
                    result.append(self.inline(page, theirs, False) + " | " + self.inline(page, rest))
                elif line.startswith("|"):
                    result.append(self.inline(page, line))
                else:
                    result.append("")
            else:
                paragraph.append(line)
        flush()
        return "\n".join(result) + "\n"


def _code(text: str) -> str:
    """Returns code in quotes. Doxygen ends code in single quotes at an apostrophe, and takes << for a tag."""
    if "<" in text:
        return "<code>" + re.sub(r"([\\@<>&#$%*_])", r"\\\1", text) + "</code>"
    return f"``{text}``"


def _escape_heading(text: str) -> str:
    return re.sub(r"([\\@<>&#$%])", r"\\\1", text)
