"""The tables of docs/coming_from: every name of Reel in the second column is a public name, and no row repeats another."""
import re
from pathlib import Path

from reference import Name

# A name in code is checked if it is called, qualified, a template, a member, or all of the code. Others are variables.
_NAME = re.compile(r"(?P<dot>\.\s*)?(?<![\w:])(?P<name>(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)(?P<next>\s*[({<])?")
_CPP = {"float", "bool", "true", "false", "int", "auto", "const"}


def unknown_names(root: Path, names: list[Name]) -> list[str]:
    """Returns a sentence for each name of Reel in the tables that no public header has."""
    known = {n.name for n in names}
    members = {n.name.rpartition("::")[2] for n in names if "::" in n.name}
    found: list[str] = []
    for page in sorted(set((root / "docs/coming_from").glob("*.md")) - {root / "docs/coming_from/README.md"}):
        rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
        for row in rows[2:]:
            ours = row.split(" | ")[1]
            for code in re.findall(r"`([^`]+)`", ours):
                found += [f"{page.relative_to(root)}: {name} in `{code}` is no public name"
                          for name in _names_in(code) if name not in known and name not in members]
    return found


def repeated_rows(root: Path) -> list[str]:
    """Returns a sentence for each row whose names another row of the page has too. Merges of two changes make such rows."""
    found: list[str] = []
    for page in sorted((root / "docs/coming_from").glob("*.md")):
        rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
        names = [[set(re.findall(r"`([^`]+)`", cell)) for cell in row.split(" | ")[:2]] for row in rows]
        found += [f"{page.relative_to(root)}: another row has all names of {row}"
                  for i, row in enumerate(rows) for k in range(len(rows))
                  if k != i and all(mine <= other for mine, other in zip(names[i], names[k]))]
    return found


def _names_in(code: str) -> list[str]:
    text = re.sub(r'"[^"]*"|std::\w+', "", code)
    names = []
    for match in _NAME.finditer(text):
        name = match["name"]
        if name not in _CPP and (match["dot"] or match["next"] or "::" in name or name == text.strip()):
            names.append(name)
    return names
