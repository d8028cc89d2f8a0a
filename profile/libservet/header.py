"""Reads the public header, for its manual pages (man/functions.py) and its modules in other languages (bindings.py).

What the header keeps to: a comment right above a declaration describes it, and the functions right below it; `/* -- title -- */` opens a
section, with what is to be said of all its functions behind the title.
"""

import re
import sys

TOKENS = re.compile(
    r"/\*(?P<comment>.*?)\*/"
    r"|^(?P<result>[a-z][\w ]*?[ *]+)(?P<function>servet_\w+)\((?P<arguments>[^;{]*?)\);"
    r"|^(?:struct|enum) (?P<type>servet_\w+) \{.*?^\};"
    r"|^(?P<constants>(?:#define SERVET_\w+ [^\n]+\n)+)",
    re.MULTILINE | re.DOTALL,
)


class Page:
    """A comment, and the functions right below it."""

    def __init__(self, section, text):
        self.section, self.text, self.functions = section, text, []

    def name(self):
        return self.functions[0][1]


def plain(comment):
    """The text of a comment without the stars."""
    lines = [re.sub(r"^ ?\* ?", "", line) if i else line.lstrip() for i, line in enumerate(comment.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip("\n ")


def parse(header):
    """Sections [(title, text)], pages, and types {name: (comment, definition)} in the header's order."""
    sections, pages, types = [], [], {}
    comment, comment_end, function_end = "", -1, -1
    for token in TOKENS.finditer(header):
        if token["comment"] is not None:
            text = plain(token["comment"])
            opened = re.match(r"-- (.*?) --(?:\n|$)(.*)", text, re.DOTALL)
            if opened:
                sections.append((opened[1], opened[2].strip()))
            comment, comment_end = text, token.end()
            continue
        documented = header[comment_end : token.start()] == "\n"
        if token["function"]:
            if documented:
                pages.append(Page(sections[-1], comment))
            elif header[function_end : token.start()] != "\n":
                sys.exit(f"header.py: nothing is said of {token['function']}()")
            arguments = " ".join(token["arguments"].split())
            pages[-1].functions.append((token["result"].strip(), token["function"], arguments.split(", ")))
            function_end = token.end()
        else:
            names = [token["type"]] if token["type"] else re.findall(r"#define (\w+)", token["constants"])
            definition = token[0].rstrip("\n")
            types.update({name: (comment if documented else "", definition) for name in names})
    return sections, pages, types
