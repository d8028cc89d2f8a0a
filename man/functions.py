#!/usr/bin/env python3
"""Manual pages of section 3, one for each function of a public header, made of what the header itself says.

usage: functions.py list HEADER
       functions.py pages HEADER MAP INDEX FOLDER

`list` prints a line for each page: its name, and those of the links to it. `pages` writes them into FOLDER: INDEX, a page in mdoc(7) with the line
`.\\" FUNCTIONS` where the list of all functions goes, under its name without ".in", and a page for each function.
Functions that share one comment share one page, to which the other names are links.

What the header keeps to, beside what profile/libservet/header.py says: `name` is an argument; lines indented by four are shown as they are,
by two they are a list of errors. A sentence that opens with "0", "1" or "-1" and a mark of punctuation says what is
returned, and so does the rest of its paragraph. MAP is the library's version script: a function that it does not export
is an error.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "profile", "libservet"))
sys.dont_write_bytecode = True
from header import parse  # noqa: E402

RETURNS = re.compile(r"(?:^|(?<=[.:] ))(?=-?[01](?:[;:,.]| and | or ))")
# What gets markup of its own, with the marks around it.
MARKED = re.compile(r"(?P<open>\(?)(?P<text>`[^`]+`|[a-z][\w-]*\((?P<section>[1-8]?)\))(?P<close>[.,;:)?]*)(?=\s|$)")


def escaped(text):
    text = re.sub(r"(?<![\w-])-(?=\d|E[A-Z])", r"\\-", text.replace("\\", "\\e").replace("…", "..."))
    return "\\&" + text if text[:1] in (".", "'") else text


def marked(text, own):
    """Running text as lines of mdoc: each sentence on its own, arguments and references as macros."""
    lines, at = [], 0
    for match in MARKED.finditer(text):
        word = match["text"]
        if word[0] == "`":
            macro, shown = "Fa", [f'"{word[1:-1]}"' if " " in word else word[1:-1]]
        elif match["section"]:
            macro, shown = "Xr", [word[:-3], match["section"]]
        elif word[:-2] in own or not word.startswith("servet_"):
            macro, shown = "Fn", [word[:-2]]
        else:
            macro, shown = "Xr", [word[:-2], "3"]
        lines += sentences(text[at : match.start()])
        lines.append(" ".join(["." + macro, *match["open"], *shown, *match["close"]]))
        at = match.end()
    return lines + sentences(text[at:])


def sentences(text):
    return [escaped(line.strip()) for line in re.split(r"(?<=[.?!]) (?=[A-Z])", text) if line.strip()]


def blocks(text):
    """Paragraphs as ("text" | "shown" | "errors", lines)."""
    for paragraph in re.split(r"\n\s*\n", text):
        kind, lines = None, []
        for line in paragraph.split("\n"):
            now = "shown" if line.startswith("    ") else "errors" if line.startswith("  -E") else "text"
            if now != kind and lines:
                yield kind, lines
                lines = []
            kind = now
            lines.append(line)
        if lines:
            yield kind, lines


def rendered(kind, lines, own):
    if kind == "shown":
        return [".Bd -literal -offset indent", *(escaped(line[4:]) for line in lines), ".Ed"]
    if kind == "errors":
        items = []
        for line in lines:
            names, _, meaning = line.strip().partition("  ")
            items += [f".It {escaped(names)}", *marked(meaning.strip(), own)]
        return [".Bl -tag -width Ds", *items, ".El"]
    return marked(" ".join(line.strip() for line in lines), own)


def described(text, own):
    """Two lists of lines: what it does, what it returns."""
    does, returns, returning = [], [], False
    for kind, lines in blocks(text):
        if kind != "text":
            (returns if returning else does).extend(rendered(kind, lines, own))
            continue
        joined = " ".join(line.strip() for line in lines)
        split = RETURNS.search(joined)
        at = split.start() if split else len(joined)
        for part, into in ((joined[:at], does), (joined[at:], returns)):
            if part.strip():
                into.extend(([".Pp"] if into else []) + marked(part.strip(), own))
        returning = bool(split)
    return does, returns


def title(page):
    """The first sentence as far as its first mark of punctuation."""
    said = re.split(r"[.:;](?:\s|$)|\s\(|\n\n", page.text)[0]
    said = " ".join(said.replace("`", "").split())
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]


def types_of(page, types):
    """Definitions that a reader of the page needs, each once, in the header's order."""
    seen, found = " ".join(a for _, _, arguments in page.functions for a in arguments) + page.text, set()
    while more := {n for n in types if n not in found and re.search(rf"\b{n}\b", seen)}:
        found |= more
        seen += " ".join(types[name][1] for name in more)
    return list(dict.fromkeys(types[name] for name in types if name in found))


def prototypes(functions):
    for result, name, arguments in functions:
        yield f'.Ft "{result}"' if " " in result else f".Ft {result}"
        yield " ".join([f".Fn {name}", *(f'"{argument}"' for argument in arguments)])


def page_text(page, pages, types, context):
    own = {name for _, name, _ in page.functions}
    does, returns = described(page.text, own)
    section_title, section_text = page.section
    also_does, also_returns = described(section_text, own)
    does += [".Pp", *also_does] if also_does else []
    returns += also_returns
    source = re.search(r"\((.*)\)", section_title)
    name, others = page.name(), [p.name() for p in pages if p.section == page.section and p is not page]
    lines = [context["date"], f".Dt {name.upper()} 3", ".Os", ".Sh NAME"]
    names = [n for _, n, _ in page.functions]
    lines += [f".Nm {n} ," for n in names[:-1]] + [f".Nm {names[-1]}", f".Nd {escaped(title(page))}"]
    lines += [".Sh LIBRARY", ".Nm libservet", ".Pq \\-lservet, pkg-config servet"]
    lines += [".Sh SYNOPSIS", ".In servet.h", *prototypes(page.functions), ".Sh DESCRIPTION", *does]
    for comment, definition in types_of(page, types):
        lines += [".Pp", *(marked(" ".join(comment.split()), own) if comment else [])]
        lines += [".Bd -literal", *(escaped(line) for line in definition.split("\n")), ".Ed"]
    if source:
        lines += [".Pp", f"Source: {escaped(source[1])}."]
    if not returns and any(result != "void" and "*" not in result for result, _, _ in page.functions):
        sys.exit(f"functions.py: expected a sentence such as '0: not measured.' on what {name}() returns")
    if returns:
        lines += [".Sh RETURN VALUES", *returns]
    lines += [".Sh COMPATIBILITY", f"Symbol version {context['symbols'][name]};", ".Xr servet 3", "says what is kept."]
    lines += [".Sh SEE ALSO"]
    return "\n".join(lines + [f".Xr {other} 3 ," for other in sorted(others)] + [".Xr servet 3", ""])


def index_lines(sections, pages):
    for section in sections:
        here = [p for p in pages if p.section == section]
        if here:
            heading = re.sub(r" *\(.*\)", "", section[0])
            yield f".Ss {heading[0].upper()}{heading[1:]}"
            yield ".Bl -tag -width Ds"
            for page in here:
                yield ".It " + " , ".join(f"Xr {name} 3" for _, name, _ in page.functions)
                yield escaped(title(page))
            yield ".El"


def write_pages(header, version_script, index, folder):
    sections, pages, types = parse(open(header, encoding="utf-8").read())
    symbols, node = {}, None
    for line in open(version_script, encoding="utf-8"):
        node = line.split()[0] if line.rstrip().endswith("{") else node
        symbols.update({name: node for name in re.findall(r"^\s+(servet_\w+);", line)})
    for name in (name for page in pages for _, name, _ in page.functions):
        if name not in symbols:
            sys.exit(f"functions.py: {version_script} does not export {name}()")
    text = open(index, encoding="utf-8").read()
    context = {"date": text.split("\n")[0], "symbols": symbols}
    for page in pages:
        with open(f"{folder}/{page.name()}.3", "w", encoding="utf-8") as out:
            out.write(page_text(page, pages, types, context))
    with open(f"{folder}/{index.rsplit('/', 1)[-1].removesuffix('.in')}", "w", encoding="utf-8") as out:
        out.write(text.replace('.\\" FUNCTIONS\n', "\n".join(index_lines(sections, pages)) + "\n"))


if sys.argv[1:2] == ["list"]:
    for page in parse(open(sys.argv[2], encoding="utf-8").read())[1]:
        print(*(f"{name}.3" for _, name, _ in page.functions))
else:
    write_pages(*sys.argv[2:])
