"""Adds words of pages to the search of the site. Doxygen's finds the beginnings of names and titles only.

Words are those of titles and headings, and the names of other libraries in the tables of docs/coming_from.
"""
import html
import json
import re
from pathlib import Path

import pages

# Words that say nothing about a page.
COMMON = {"and", "are", "for", "from", "how", "its", "not", "one", "the", "them", "they", "this", "that", "what", "when",
          "which", "with", "you", "your"}


def search_id(text: str) -> str:
    """Returns text as the search compares it: lower case, with other characters as codes."""
    return "".join(c if re.match(r"[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in text.lower())


def spellings(word: str) -> set[str]:
    """Returns the word, and its American spelling."""
    return {word, re.sub(r"is(e|er|ers|ed|ing|ation|ations)$", r"iz\1", word)}


def words_of(text: str) -> set[str]:
    found = re.findall(r"[a-z_][a-z_0-9]{2,}", text.lower())
    return {spelling for word in found if word not in COMMON for spelling in spellings(word)}


def foreign_names(root: Path, page: str) -> list[str]:
    """Returns the names in the first column of the tables of a page."""
    rows = re.findall(r"^\| ([^|]*) \|", (root / page).read_text(), re.M)
    return [name for row in rows for name in re.findall(r"`([\w.]+)", row)]


def entries(root: Path, stager: pages.Stager) -> list[tuple[str, str, str]]:
    """Returns a word to look up, a label and a link for each entry."""
    result = []
    # Pages for beginners first, decisions last.
    order = sorted(pages.pages(root), key=lambda page: (page.startswith("docs/decisions/"), not page.startswith("docs/start/")))
    for page in order:
        place = "index.html" if page == "README.md" else f"{pages.page_id(page)}.html"
        plain = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading) for heading in stager.headings(page)]
        if page == "CHANGELOG.md" or page.startswith("docs/changes/") or not plain:
            continue
        title = plain[0]
        for i, heading in enumerate(plain):
            label = title if i == 0 else f"{title}: {heading}"
            link = place if i == 0 else f"{place}#{pages.page_id(page)}-{pages.slug(stager.headings(page)[i])}"
            result += [(word, label, link) for word in sorted(words_of(heading))]
        if page.startswith("docs/coming_from/") and not page.endswith("README.md"):
            for name in foreign_names(root, page):
                keys = {name, name.rpartition(".")[2]}
                result += [(key, f"{name}, {title}", place) for key in sorted(keys)]
    return result


def add(root: Path, stager: pages.Stager, html_folder: Path) -> None:
    """Adds the entries to the lists of all names. Words with a first letter that Doxygen lacks are left out."""
    folder = html_folder / "search"
    letters = re.search(r'0: "([^"]*)"', (folder / "searchdata.js").read_text())[1]
    rows: dict[str, dict] = {}
    for word, label, link in entries(root, stager):
        if word[0].lower() in letters:
            rows.setdefault(word[0].lower(), {})[search_id(word), label] = link
    for letter, added in rows.items():
        file = folder / f"all_{letters.index(letter):x}.js"
        before = re.findall(r"^  \[.*?\](?=,?$)", file.read_text(), re.M)
        made = [f"  ['{key}_p{number}',['{html.escape(label)}',['../{link}',1,'']]]"
                for number, ((key, label), link) in enumerate(added.items())]
        lines = sorted(before + made, key=lambda line: json.dumps(line.split("',")[0].rsplit("_", 1)[0]))
        file.write_text("var searchData=\n[\n" + ",\n".join(lines) + "\n];\n")
