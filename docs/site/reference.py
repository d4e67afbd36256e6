"""The public names, read from Doxygen's XML."""
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# Members that need no contract: they do what the language says.
SPECIAL = re.compile(r"~.*|Error|operator=|operator==|operator!=|members|member_names|destroy")


@dataclass
class Name:
    """A public function with its overloads, a type, an option (a member of a struct), or a constant."""
    kind: str                 # function, type, enum, option, constant
    name: str                 # with the class: Tensor::dim
    subject: str
    reference: str            # Doxygen's identifier of the first declaration
    arguments: str = ""       # (a, b, axis)
    result: str = ""
    text: list[str] = field(default_factory=list)   # the paragraphs of the first contract; the first is its first sentence
    is_special: bool = False

    def owner(self) -> str:
        return self.name.rpartition("::")[0]

    def link(self) -> str:
        """Returns the name's place in the site."""
        page = re.fullmatch(r"(.*)_1(g*a[0-9a-f]{20,}\w*)", self.reference)
        return f"{page[1]}.html#{page[2]}" if page else f"{self.reference}.html"


def read(xml: Path, subjects: list[dict], internal: list[str]) -> list[Name]:
    """Returns the public names of all subjects, in the order of the headers."""
    names: list[Name] = []
    for subject in subjects:
        group = ElementTree.parse(xml / f"group__{subject['id']}.xml").getroot().find("compounddef")
        assert group is not None
        for inner in group.findall("innerclass"):
            names += _class(xml, inner.get("refid", ""), subject["id"])
        for member in group.iter("memberdef"):
            names += _member(member, "", subject["id"])
    hidden = set(internal)
    names = [n for n in names if n.name not in hidden and n.name.split("::")[0] not in hidden]
    return _merge_overloads(names)


def _class(xml: Path, refid: str, subject: str) -> list[Name]:
    compound = ElementTree.parse(xml / f"{refid}.xml").getroot().find("compounddef")
    assert compound is not None
    name = re.sub(r"^reel::", "", compound.findtext("compoundname", ""))
    if compound.get("prot") != "public" or "<" in name:
        return []
    names = [Name("type", name, subject, refid, text=_text(compound))]
    options_of_line: dict[str, list[Name]] = {}
    for member in compound.iter("memberdef"):
        if member.get("prot") == "public":
            found = _member(member, name + "::", subject)
            names += found
            place = member.find("location")
            if place is not None:
                options_of_line.setdefault(place.get("line", ""), []).extend(n for n in found if n.kind == "option")
    for options in options_of_line.values():  # options of one declaration share its comment
        text = next((n.text for n in options if n.text), [])
        for option in options:
            option.text = option.text or text
    for inner in compound.findall("innerclass"):
        if inner.get("prot") == "public":
            names += _class(xml, inner.get("refid", ""), subject)
    return names


def _member(member: ElementTree.Element, owner: str, subject: str) -> list[Name]:
    kinds = {"function": "function", "enum": "enum", "typedef": "type", "variable": "option" if owner else "constant"}
    kind = kinds.get(member.get("kind", ""))
    name = member.findtext("name", "")
    if not kind or name.startswith("@") or re.search(r"\w *<", name):  # an instantiation
        return []
    arguments = ", ".join(p.findtext("declname", "") or "..." for p in member.findall("param"))
    constructor = owner.rstrip(":").split("::")[-1] == name
    args = member.findtext("argsstring", "")
    is_special = bool(SPECIAL.fullmatch(name)) or constructor or args.endswith("=delete") or args.endswith("=default")
    result = Name(kind, owner + name, subject, member.get("id", ""), f"({arguments})" if kind == "function" else "",
                  "".join(member.find("type").itertext()) if member.find("type") is not None else "", _text(member), is_special)
    values = [Name("option", f"{owner}{name}::{v.findtext('name')}", subject, v.get("id", ""), text=_text(v))
              for v in member.findall("enumvalue")]
    return [result, *values]


def _text(element: ElementTree.Element) -> list[str]:
    """Returns the paragraphs of a contract, without markup."""
    found: list[str] = []
    for part in ("briefdescription", "detaileddescription"):
        description = element.find(part)
        if description is not None:
            found += [" ".join("".join(p.itertext()).split()) for p in description.iter("para")]
    return [p for p in found if p]


def _merge_overloads(names: list[Name]) -> list[Name]:
    """Returns one entry for all overloads of a function: that of the first with a contract."""
    merged: dict[tuple[str, str], Name] = {}
    for name in names:
        key = (name.kind, name.name)
        known = merged.get(key)
        if known is None:
            merged[key] = name
        elif not known.text and name.text:
            known.text, known.arguments, known.reference = name.text, name.arguments, name.reference
        if known is not None:
            known.is_special = known.is_special and name.is_special
    return list(merged.values())


def without_contract(names: list[Name]) -> list[Name]:
    """Returns the functions, types and options that lack a comment. Constants and enumerators need none, nor does the enum
    of an option that has one, beside it in a struct."""
    types = {n.name for n in names if n.kind in ("type", "enum")}
    enums = {n.name for n in names if n.kind == "enum"}
    explained = {f"{n.owner()}::{n.result}" for n in names if n.kind == "option" and n.text}

    def needs_none(name: Name) -> bool:
        is_guide = name.kind == "function" and name.name in types   # a deduction guide
        is_explained = name.kind == "enum" and name.name in explained
        return name.is_special or is_guide or is_explained or name.kind == "constant" or name.owner() in enums

    return [n for n in names if not n.text and not needs_none(n)]
