#!/usr/bin/env python3
"""Is the Spack recipe one that Spack's words allow, and are its options those of the build? usage: spack_recipe.py SOURCE

Spack itself is not needed: the words of a recipe are stood for by functions that keep what they are told.
"""
import ast
import os
import re
import sys
import types

source = sys.argv[1]
recipe = os.path.join(source, "packaging", "spack", "package.py")
told = {word: [] for word in ("license", "version", "variant", "depends_on")}


def keeps(word):
    return lambda *arguments, **options: told[word].append((arguments, options))


class MesonPackage:
    """What Spack's base class would be."""


class Spec:
    def __init__(self, on):
        self.on = on

    def satisfies(self, text):
        assert text[0] == "+", text
        return text[1:] in self.on


words = types.ModuleType("spack.package")
words.MesonPackage = MesonPackage
words.__all__ = ["MesonPackage", *told]
for word in told:
    setattr(words, word, keeps(word))
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = words

with open(recipe) as file:
    text = file.read()
names = {}
exec(compile(ast.parse(text, recipe), recipe, "exec"), names)
package = names["Servet"]
assert issubclass(package, MesonPackage) and package.__doc__, "expected a MesonPackage with a description"
assert told["license"] and told["version"], "expected a licence and a version"

variants = {arguments[0] for arguments, _ in told["variant"]}
for arguments, options in told["depends_on"]:
    assert re.fullmatch(r"[a-z0-9-]+(@[0-9.:]+)?", arguments[0]), arguments
    when = options.get("when", "")
    assert not when or when[1:] in variants, f"{arguments[0]}: no variant {when}"

with open(os.path.join(source, "meson_options.txt")) as file:
    known = dict(re.findall(r"option\(\s*'([a-z_]+)',\s*type:\s*'([a-z]+)'", file.read()))
assert known, "no options found in meson_options.txt"
values = {"feature": {"enabled", "disabled", "auto"}, "boolean": {"true", "false"}}
for on in [set(), variants]:
    instance = package()
    instance.spec = Spec(on)
    for argument in instance.meson_args():
        name, value = re.fullmatch(r"-D([a-z_]+)=([a-z]+)", argument).groups()
        assert name in known, f"{argument}: meson_options.txt has no {name}"
        assert value in values[known[name]], f"{argument}: expected one of {values[known[name]]}"
print(f"{len(told['depends_on'])} dependencies, {len(variants)} variants")
