"""Adds words of pages to the search of the site. Doxygen's finds the beginnings of names and titles only.

Words are those of titles, headings and bold beginnings of paragraphs, words that a page has often and few other pages have, the
names of other libraries in the tables of docs/coming_from, later parts of names ("padding" finds `mask_padding`), and OTHER_WORDS.
"""
import html
import json
import re
from pathlib import Path

import pages

# Words that say nothing about a page.
COMMON = {"and", "are", "for", "from", "how", "its", "not", "one", "the", "them", "they", "this", "that", "what", "when",
          "which", "with", "you", "your"}


# Words that newcomers look for, and the headings that answer them.
OTHER_WORDS = {
    "README.md": {"Not included": ["cuda", "device", "gpu", "half precision", "macos", "python", "windows"]},
    "docs/data.md": {"Batches": ["collate", "dataloader", "minibatch", "shuffle"],
                     "Batches that are too large for memory": ["accumulate gradients", "gradient accumulation"]},
    "docs/features.md": {"Models and training": ["tensorboard"]},
    "docs/onnx.md": {"Saving a function": ["export a model", "deploy"]},
    "docs/recipes.md": {"Short answers": ["lr schedule", "scheduler"]},
    "docs/start/debugging.md": {"Values at a breakpoint": ["gdb", "lldb", "pretty printers"]},
    "docs/start/first_model.md": {"A first model": ["tutorial", "training loop"]},
    "docs/start/saving.md": {"Saving": ["load a model", "resume"]},
}


def search_id(text: str) -> str:
    """Returns text as the search compares it: lower case, with other characters as codes."""
    return "".join(c if re.match(r"[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in text.lower())


# A page is found by a word that it has so often, if at most so many pages have it as often.
OFTEN, MOST_PAGES = 6, 6


def spellings(word: str) -> set[str]:
    """Returns the word, and its American spelling."""
    return {word, re.sub(r"is(e|er|ers|ed|ing|ation|ations)$", r"iz\1", word)}


def words_of(text: str) -> set[str]:
    found = re.findall(r"[a-z_][a-z_0-9]{2,}", text.lower())
    return {spelling for word in found if word not in COMMON for spelling in spellings(word)}


def phrases_of(text: str) -> set[str]:
    """Returns the end of the text from each of its words on, so that "learning rate" finds "A learning rate that changes"."""
    words = re.findall(r"\w+", text.lower())
    rests = {" ".join(words[i:]) for i, word in enumerate(words) if len(word) > 2 and word not in COMMON}
    return {" ".join(spelling) for rest in rests for spelling in
            (rest.split(), [max(spellings(word) - {word}, default=word) for word in rest.split()])}


def headings_of(root: Path, page: str, stager: pages.Stager) -> list[tuple[str, str]]:
    """Returns each heading with itself, and each bold beginning of a paragraph with the heading above."""
    text = re.sub(r"^```.*?^```", "", (root / page).read_text(), flags=re.M | re.S)
    result, above = [], ""
    for heading, bold in re.findall(r"^#+ (.*)$|^\*\*([^*]+)\*\*", text, re.M):
        above = heading or above
        result.append((heading or bold.rstrip(".:"), above))
    if [text for text, above in result if text == above] != stager.headings(page):
        raise SystemExit(f"search_words.py: the headings of {page} are not those of its page on the site")
    return result


def frequent_words(root: Path, names: list[str]) -> dict[str, set[str]]:
    """Returns the words of each page that it has often, and that tell it from most others."""
    often: dict[str, set[str]] = {}
    for page in names:
        prose = re.sub(r"^```.*?^```", "", (root / page).read_text(), flags=re.M | re.S)
        found = re.findall(r"\b[a-z]{5,}\b", prose.lower())
        often[page] = {word for word in set(found) if found.count(word) >= OFTEN} & words_of(prose)
    pages_of: dict[str, int] = {}
    for words in often.values():
        for word in words:
            pages_of[word] = pages_of.get(word, 0) + 1
    return {page: {word for word in words if pages_of[word] <= MOST_PAGES} for page, words in often.items()}


def parts_of_names(folder: Path) -> list[tuple[str, str, str]]:
    """Returns an entry for each later part of a public name, as in mask_padding, and for its American spelling."""
    result = []
    for file in sorted(folder.glob("all_*.js")):
        for label, link in re.findall(r"\['\w+',\['([a-z0-9]+(?:_[a-z0-9]+)+)',\['\.\./([^']*)'", file.read_text()):
            result += [(part, label, link) for part in label.split("_")[1:] if len(part) > 2]
        for label, link in re.findall(r"\['\w+',\['(\w+)',\['\.\./([^']*)'", file.read_text()):
            result += [(word, label, link) for word in sorted(spellings(label.lower()) - {label.lower()})]
    return result


def foreign_names(root: Path, page: str) -> list[str]:
    """Returns the names in the first column of the tables of a page."""
    rows = re.findall(r"^\| ([^|]*) \|", (root / page).read_text(), re.M)
    return [name for row in rows for name in re.findall(r"`([\w.]+)", row)]


def entries(root: Path, stager: pages.Stager) -> list[tuple[str, str, str]]:
    """Returns a word to look up, a label and a link for each entry."""
    result = []
    # Pages for beginners first, decisions last.
    order = sorted(pages.pages(root), key=lambda page: (page.startswith("docs/decisions/"), not page.startswith("docs/start/")))
    frequent = frequent_words(root, [page for page in order if page.startswith("docs/") and page.count("/") < 3
                                     and not page.startswith(("docs/changes/", "docs/decisions/"))])
    for page in order:
        place = "index.html" if page == "README.md" else f"{pages.page_id(page)}.html"
        found = headings_of(root, page, stager)
        if page == "CHANGELOG.md" or page.startswith("docs/changes/") or not found:
            continue
        plain = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", text) for text, _ in found]
        title = plain[0]
        result += [(word, title, place) for word in sorted(frequent.get(page, set()) - words_of(title))]
        others = dict(OTHER_WORDS.get(page, {}))
        for i, (text, above) in enumerate(found):
            label = title if i == 0 else f"{title}: {plain[i]}"
            link = place if above == found[0][1] else f"{place}#{pages.page_id(page)}-{pages.slug(above)}"
            result += [(words, label, link) for words in sorted(phrases_of(plain[i]) | set(others.pop(text, [])))]
        if others:
            raise SystemExit(f"search_words.py: {page} has no heading {', '.join(others)}")
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
    for word, label, link in entries(root, stager) + parts_of_names(folder):
        if word[0].lower() in letters:
            rows.setdefault(word[0].lower(), {})[search_id(word), label] = link
    for letter, added in rows.items():
        file = folder / f"all_{letters.index(letter):x}.js"
        before = re.findall(r"^  \[.*?\](?=,?$)", file.read_text(), re.M)
        made = [f"  ['{key}_p{number}',['{html.escape(label)}',['../{link}',1,'']]]"
                for number, ((key, label), link) in enumerate(added.items())]
        lines = sorted(before + made, key=lambda line: json.dumps(line.split("',")[0].rsplit("_", 1)[0]))
        file.write_text("var searchData=\n[\n" + ",\n".join(lines) + "\n];\n")
