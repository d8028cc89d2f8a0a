#!/usr/bin/env python3
"""Declarations for Python (ctypes) and Fortran (bind(c)), made of what the public header declares, by the reader that makes its manual pages.

usage: bindings.py HEADER TEMPLATE OUTPUT [NAME=VALUE ...]

The language is that of TEMPLATE (….py.in, ….f90.in), in which lines @NAME@ are replaced: @TYPES@ and @FUNCTIONS@ by declarations, others by
their VALUE. A pointer of which the comment says that it may be NULL is an optional argument in Fortran, and so is `error`; of several
numbers if it is const, has its `room` behind it, or is written with brackets in the comment.
"""

import re
import sys

sys.dont_write_bytecode = True
from header import parse  # noqa: E402

CTYPES = {name: "c_" + name.replace("_t", "") for name in ("char", "int", "uint32_t", "uint64_t", "int64_t", "double")}
CTYPES["size_t"] = "c_size_t"
FORTRAN = {
    "int": "integer(c_int)",
    "uint32_t": "integer(c_int32_t)",
    "uint64_t": "integer(c_int64_t)",
    "int64_t": "integer(c_int64_t)",
    "size_t": "integer(c_size_t)",
    "double": "real(c_double)",
}


class Declaration:
    """An argument, a member or a result: `const struct servet_x *name`."""

    def __init__(self, text):
        words = re.match(r"(const )?((?:struct |enum )?\w+)[ ]*(\**)(?:const )?(\w*)(?:\[(\d+)\])?$", text)
        self.const, self.type, stars, self.name, self.length = words.groups()
        self.pointers = len(stars)
        self.type = "int" if self.type.startswith("enum ") else self.type
        self.struct = self.type[7:] if self.type.startswith("struct ") else None


def members(definition):
    """[(declaration, comment)] of a struct."""
    body = definition[definition.index("{") + 1 : definition.rindex("}")]
    body = re.sub(r"^\s*/\*.*?\*/", "", body, flags=re.MULTILINE | re.DOTALL)
    for text, comment in re.findall(r"^\s*([a-z][^;]*);(?:[ ]*/\*(.*?)\*/)?", body, re.MULTILINE | re.DOTALL):
        first, *more = text.split(", ")
        kind = first.rpartition(" ")[0]
        for declaration in [first, *(f"{kind} {name}" for name in more)]:
            yield Declaration(declaration), comment.strip()


# -- Python --


def python_name(struct):
    return "_" + "".join(word.capitalize() for word in struct.split("_")[1:])


def python_type(d):
    if d.type == "void":
        return "None"
    if d.type in ("char", "servet_profile") and d.pointers:
        return "POINTER(c_void_p)" if d.pointers > 1 else "c_char_p" if d.type == "char" else "c_void_p"
    name = python_name(d.struct) if d.struct else CTYPES[d.type]
    return f"POINTER({name})" if d.pointers else f"{name} * {d.length}" if d.length else name


def python_types(structs, _constants):
    for name, definition in structs:
        yield f"class {python_name(name)}(Structure):"
        yield "    _fields_ = ["
        yield from (f'        ("{d.name}", {python_type(d)}),' for d, _ in members(definition))
        yield from ("    ]", "", "")


def python_functions(functions):
    for _, result, name, arguments in functions:
        types = ", ".join(python_type(d) for d in arguments)
        yield f'    "{name[len("servet_"):]}": ({python_type(result)}, [{types}]),'


# -- Fortran --


def fortran_type(d):
    if d.struct and d.pointers < 2:
        return f"type({d.struct})"
    if d.type == "char":
        return "character(kind=c_char)"
    return "type(c_ptr)" if d.type == "servet_profile" else FORTRAN[d.type]


def fortran_member(d, comment):
    """The first value is what the comment says: "-1: not known" of what is set by the library, ">= 1" of what is asked for."""
    if d.pointers:
        return f"type(c_ptr) :: {d.name} = c_null_ptr"
    if d.length:
        return f"{fortran_type(d)} :: {d.name}({d.length}) = c_null_char"
    return f"{fortran_type(d)} :: {d.name} = {-1 if '-1:' in comment else 1 if comment.startswith('>= 1') else 0}"


def fortran_types(structs, constants):
    yield from (f"   integer(c_int), parameter :: {name} = {value}" for name, value in constants)
    for name, definition in structs:
        yield from ("", f"   type, bind(c) :: {name}")
        yield from (f"      {fortran_member(d, comment)}" for d, comment in members(definition))
        yield "   end type"


def fortran_argument(d, following, comment):
    if not d.pointers or (d.type == "servet_profile" and d.pointers == 1):
        return f"{fortran_type(d)}, value :: {d.name}"
    intent = "in" if d.const else "out" if d.name == "error" or d.pointers > 1 else "inout"
    may_be_null = rf"\b{d.name}(?:\[\])?`?(?: or `\w+`)? ?(?:\(may be |may be |is )?NULL\b|`{d.name}` is [^.]*; NULL:"
    optional = ", optional" if d.name == "error" or re.search(may_be_null, comment) else ""
    several = (d.const and not d.struct) or (following and following.name == "room") or f"{d.name}[" in comment
    return f"{fortran_type(d)}, intent({intent}){optional} :: {d.name}{'(*)' if several else ''}"


def fortran_functions(functions):
    for comment, result, name, arguments in functions:
        kind = "subroutine" if result.type == "void" else "function"
        of = "" if result.type == "void" else "type(c_ptr) " if result.pointers else fortran_type(result) + " "
        yield f"      {of}{kind} {name}({', '.join(d.name for d in arguments)}) bind(c)"
        yield "         import"
        for d, following in zip(arguments, [*arguments[1:], None]):
            yield f"         {fortran_argument(d, following, comment)}"
        yield f"      end {kind}"


# -- the header --


def read(header):
    """Structs [(name, definition)], functions [(comment, result, name, arguments)], constants [(name, value)]."""
    with open(header, encoding="utf-8") as file:
        text = file.read()
    _, pages, types = parse(text)
    structs = [(name, definition) for name, (_, definition) in types.items() if definition.startswith("struct")]
    functions = [
        (" ".join(page.text.split()), Declaration(result), name, [Declaration(a) for a in arguments if a != "void"])
        for page in pages
        for result, name, arguments in page.functions
    ]
    taken = {name for _, _, name, _ in functions}
    constants = re.findall(r"^(?:#define|   ) (SERVET_\w+) (?:= )?\(?(-?\d+)\)?", text, re.MULTILINE)
    # Fortran knows no capitals: a constant is not called as a function is.
    constants = [(name.lower() + ("_here" if name.lower() in taken else ""), value) for name, value in constants]
    return structs, functions, constants


def bindings(header, template, values):
    """The text of `template` with the declarations of `header`, and the other values."""
    structs, functions, constants = read(header)
    python = template.endswith(".py.in")
    types = (python_types if python else fortran_types)(structs, constants)
    values = {
        "TYPES": "\n".join(types).rstrip("\n"),
        "FUNCTIONS": "\n".join((python_functions if python else fortran_functions)(functions)),
        **values,
    }
    with open(template, encoding="utf-8") as file:
        return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], file.read())


if __name__ == "__main__":
    with open(sys.argv[3], "w", encoding="utf-8") as output:
        output.write(bindings(sys.argv[1], sys.argv[2], dict(value.split("=", 1) for value in sys.argv[4:])))
