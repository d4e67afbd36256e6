"""The index of functions: one table for each subject, made from the contracts in the headers."""
import re

from headers import escape
from reference import Name

# Results that hold no elements of tensors.
_PLAIN = r"(const |constexpr )*(bool|int|Dims?|TensorType|std::(int64_t|size_t|string))( ?&)?"
TITLE = "Index of functions"


def page(names: list[Name], subjects: list[dict]) -> str:
    """Returns the page in Doxygen's Markdown."""
    lines = [f"# {TITLE} {{#functions}}", "",
             "Every public function, type and option, by subject; each name leads to its contract. *Use*: the modes in which a "
             "function works (eager, in a trace, on a tape), and whether gradients pass through it. \"Everywhere\": the function "
             "reads no values, and may be called anywhere. \"Eager\": it works on values, and a trace does not record it.", ""]
    for subject in subjects:
        lines.append(f"- @ref functions-{subject['id']}")
    for subject in subjects:
        own = [n for n in names if n.subject == subject["id"]]
        lines += ["", f"## {subject['title']} {{#functions-{subject['id']}}}", ""]
        functions = [n for n in own if n.kind == "function" and not n.is_special]
        if functions:
            rows = [_function(n, subject) for n in functions]
            shown = [c for c in range(4) if any(row[c] for row in rows)]
            titles = ["function", "meaning", "shapes", "use"]
            lines += [_row([titles[c] for c in shown]), _row(["---"] * len(shown))]
            lines += [_row([row[c] for c in shown]) for row in rows]
        others = [n for n in own if n.kind != "function"]
        if others:
            lines += ["", "| type or option | meaning |", "| --- | --- |"]
            lines += [_other(n) for n in others]
    return "\n".join(lines) + "\n"


def _function(name: Name, subject: dict) -> list[str]:
    return [_link(name, name.arguments), _first_sentence(name), _shapes(name, subject), _use(name, subject)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _other(name: Name) -> str:
    return f"| {_link(name, '')} | {_first_sentence(name)} |"


def _link(name: Name, arguments: str) -> str:
    label = f"{name.name}{arguments}".replace("|", "\\|")
    return f"[``{label}``]({name.link()})" if name.text else f"``{label}``"


def _first_sentence(name: Name) -> str:
    if not name.text:
        return ""
    sentence = re.match(r".*?(?<!\.)\.(?= [A-Z]|$)", name.text[0])
    text = (sentence[0] if sentence else name.text[0]).rstrip(":.") + "."
    return _cell(text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text)


def _shapes(name: Name, subject: dict) -> str:
    """Returns the shapes that subjects.toml gives, or the sentence of the contract with them: a: [M, K], b: [K, N] -> [M, N]."""
    if name.name in (given := subject.get("shapes_of", {})):
        return _cell(given[name.name])
    for paragraph in name.text:
        if found := re.search(r"\b([a-z_]\w*(?:, \w+)*: [^.]*? -> [^.;]*)", paragraph):
            if len(found[1]) < 160:
                return _cell(found[1])
    return _cell(subject.get("shapes", ""))


def _use(name: Name, subject: dict) -> str:
    use = subject.get("uses", {}).get(name.name, subject["use"])
    if re.fullmatch(_PLAIN, name.result):
        use = use.replace("all modes; gradient of any order", "everywhere")
    if name.name in subject.get("without_gradient", []):
        use = use.split(";")[0] + "; no gradient"
    if name.name in subject.get("zero_gradient", []):
        use = use.split(";")[0] + "; gradient 0"
    said = [s for p in name.text for s in re.findall(r"(?:^|\. )((?:The gradients?|Gradients?|Ties) [^.]*\bgradients?\b[^.]*\.|(?:The g|G)radients? [^.]*\.)", p)]
    if said and "gradient of any order" in use:
        use += ". " + said[0]
    return _cell(use)


def _cell(text: str) -> str:
    return escape(text).replace("|", "\\|")
