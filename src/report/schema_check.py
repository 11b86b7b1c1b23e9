#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks reports against docs/report-schema.json: schema_check.py [--small] SCHEMA REPORT...

Uses the package jsonschema where it is installed, else (or with --small) the small
checker below, which knows the keywords of the schema and refuses any other. Says
which one ran.
Then spoils the first report with findings in ways that must be refused: a schema that
accepts everything would pass otherwise.
"""

import copy
import json
import re
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
ASIDE = {"$schema", "title", "description", "$defs", "properties"}


def check_object(schema, value, root, where):
    properties = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            yield f"{where}: {key} is missing"
    for key, inner in value.items():
        if key in properties:
            yield from check(properties[key], inner, root, f"{where}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{where}: {key} is unknown"


def check_array(schema, value, root, where):
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{where}: too long"
    for i, inner in enumerate(value):
        yield from check(schema.get("items", {}), inner, root, f"{where}[{i}]")


def check_keyword(key, rule, value, root, where):
    ok = True
    if key == "$ref":
        yield from check(root["$defs"][rule.rsplit("/", 1)[1]], value, root, where)
    elif key == "anyOf":
        ok = any(not list(check(choice, value, root, where)) for choice in rule)
    elif key == "type":
        ok = any(TYPES[t](value) for t in ([rule] if isinstance(rule, str) else rule))
    elif key == "const":
        ok = value == rule
    elif key == "enum":
        ok = value in rule
    elif key == "pattern":
        ok = not isinstance(value, str) or re.search(rule, value) is not None
    elif key in ("minimum", "maximum"):
        ok = not TYPES["number"](value) or (value >= rule if key == "minimum" else value <= rule)
    elif key not in ASIDE | {"required", "additionalProperties", "items", "maxItems"}:
        raise SystemExit(f"the small checker does not know the keyword {key}")
    if not ok:
        yield f"{where}: {key} {rule} refuses {value!r}"


def check(schema, value, root, where="report"):
    for key, rule in schema.items():
        yield from check_keyword(key, rule, value, root, where)
    if isinstance(value, dict):
        yield from check_object(schema, value, root, where)
    if isinstance(value, list):
        yield from check_array(schema, value, root, where)


def pick_validator(schema, small):
    try:
        import jsonschema
    except ImportError:
        small = True
    if small:
        return "the small checker", lambda report: list(check(schema, report, schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    return "jsonschema", lambda report: [e.message for e in validator.iter_errors(report)]


def spoiled(report):
    """The report with one thing wrong, each time another."""

    def without(r):
        del r["coverage"]["ranks_missing"]

    def surplus(r):
        r["findings"][0]["color"] = "red"

    def verdict(r):
        r["verdict"] = "fine"

    def ranks(r):
        r["findings"][0]["ranks"] = "0..2"

    def number(r):
        r["findings"][0]["gain_pct"] = "88 %"

    def name(r):
        r["findings"][0]["function"]["name"] = None

    def value(r):
        r["findings"][0]["beta"] = {"value": 1}

    for spoil in (without, surplus, verdict, ranks, number, name, value):
        bad = copy.deepcopy(report)
        spoil(bad)
        yield spoil.__name__, bad


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def main(*args):
    small = args[0] == "--small"
    schema_path, *paths = args[1:] if small else args
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    name, validate = pick_validator(schema, small)
    failures, self_tested = 0, False
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file, parse_constant=refuse_constant)
        for error in validate(report):
            print(f"{path}: {error}", file=sys.stderr)
            failures += 1
        if report["findings"] and not self_tested:
            self_tested = True
            for what, bad in spoiled(report):
                if not validate(bad):
                    print(f"accepted a report spoiled by '{what}'", file=sys.stderr)
                    failures += 1
    print(f"{len(paths)} reports checked by {name}, {failures} failures")
    return 1 if failures or not self_tested else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
