"""Checks a built site: links lead somewhere, nothing is loaded from a network, and the search finds what newcomers look for."""
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attributes}
        self.anchors.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for key in ("src", "href"):
            if tag != "a" and key in values:
                self.loaded.append(values[key])


def drop_links_to_private_classes(html: Path) -> None:
    """Removes the links to a list of nested classes from pages without one. Doxygen writes them also if all are private."""
    for file in html.glob("*.html"):
        text = file.read_text()
        if 'href="#nested-classes"' in text and 'name="nested-classes"' not in text and 'id="nested-classes"' not in text:
            file.write_text(re.sub(r'<a href="#nested-classes">[^<]*</a>( &#124;\n?)?', "", text))


# What newcomers look for, and a result that they must get.
SEARCHES = {
    "padding": "mask_padding", "paddin": "Ragged batches", "ragged b": "Ragged batches", "freez": "Recipes: How to freeze",
    "learning rate": "Recipes: A learning rate that changes, and one trace", "missing": "Recipes: Missing values",
    "gdb": "Debugging: Values at a breakpoint", "gpu": "Reel: Not included", "gradient acc":
    "Training data: Batches that are too large for memory", "optimizer": "Optimiser", "dataload": "Training data: Batches",
    "my loss is": "My loss is NaN", "export": "Models in the format of ONNX: Saving a function",
}


def missed_searches(html: Path) -> list[str]:
    """Returns a sentence for each search without its result."""
    entries = [entry for file in sorted((html / "search").glob("all_*.js"))
               for entry in re.findall(r"\['(\w+)_\w?\d+',\['((?:[^'\\]|\\.)*)'", file.read_text())]
    return [f"the search for {typed} does not find {label}" for typed, label in SEARCHES.items()
            if not any(key.startswith(typed.replace(" ", "_20")) and label == shown for key, shown in entries)]


def faults(html: Path) -> list[str]:
    """Returns a sentence for each link without a target, and for each file from a network."""
    pages: dict[str, _Page] = {}
    for file in sorted(html.glob("*.html")):
        page = pages[file.name] = _Page()
        page.feed(file.read_text())
    found = missed_searches(html)
    for name, page in pages.items():
        for url in page.loaded:
            if url.startswith("javascript:"):
                continue
            if re.match(r"[a-z]+:|//", url):
                found.append(f"{name} loads {url}")
            elif not (html / unquote(url)).exists():
                found.append(f"{name} loads {url}, which does not exist")
        for url in page.links:
            if re.match(r"[a-z]+:", url):
                continue
            file, _, anchor = unquote(url).partition("#")
            target = pages.get(file or name)
            if target is None and not (html / file).exists():
                found.append(f"{name} links to {file}, which does not exist")
            elif target is not None and anchor and anchor not in target.anchors:
                found.append(f"{name} links to {file}#{anchor}, which does not exist")
    for file in (html / "search").glob("*.js"):
        for url in re.findall(r"\['\.\./([^']*)',", file.read_text()):
            page, _, anchor = url.partition("#")
            if page not in pages or (anchor and anchor not in pages[page].anchors):
                found.append(f"the search links to {url}, which does not exist")
    return sorted(set(found))
