# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/check-docs on trees made for it, and on this tree."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).with_name("check-docs")
TREE = "```\nsrc/         the source\nsrc/report/  prints\n```\n"
SOURCE = "static int page_line(struct page *page)\n{\n\treturn page_end(page);\n}\n"


def run_on(files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    files = {"ARCHITECTURE.md": TREE, "src/report/page.c": SOURCE} | files
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [str(TOOL), folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class CheckDocs(unittest.TestCase):
    def accepts(self, text: str, **files: str) -> None:
        done = run_on({"docs/a.md": text, **files})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def rejects(self, text: str, complaint: str) -> None:
        done = run_on({"docs/a.md": text})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(complaint, done.stdout)

    def test_the_documents_of_this_tree_are_right(self) -> None:
        done = subprocess.run([str(TOOL)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_folder_of_sources_needs_a_line(self) -> None:
        done = run_on({"src/report/html/html.c": "\n"})
        self.assertIn("ARCHITECTURE.md: folder src/report/html has no line", done.stdout)

    def test_a_folder_without_sources_needs_none(self) -> None:
        self.accepts("", **{"src/old/meson.build": "\n"})

    def test_a_folder_of_the_tree_exists_once(self) -> None:
        tree = TREE.replace("src/ ", "src/gone/  left\nsrc/report/  again\nsrc/ ")
        done = run_on({"ARCHITECTURE.md": tree})
        self.assertIn("ARCHITECTURE.md:2: folder src/gone does not exist", done.stdout)
        self.assertIn("ARCHITECTURE.md:5: folder src/report is listed twice", done.stdout)

    def test_a_path_is_from_the_top_or_from_src(self) -> None:
        self.accepts("`src/report/page.c`, `report/page.c`, `page.c`, `src/report/`\n")

    def test_a_file_that_is_gone_is_found(self) -> None:
        self.rejects("\nSee `report/line.c`.\n", "docs/a.md:2: report/line.c does not exist")
        self.rejects("See `line.c`.\n", "line.c does not exist")
        self.rejects("See `serve/line.h`.\n", "serve/line.h does not exist")

    def test_patterns_stand_for_files(self) -> None:
        self.accepts("`report/p*.c`\n")
        self.rejects("`report/page.{c,h}`\n", "report/page.h does not exist")

    def test_what_is_no_path_of_the_tree_is_left_alone(self) -> None:
        self.accepts("`/proc/self/stat`, `OUT/flight`, `<cuda.h>`, `<name>.c`, `xyz.h`, `*.json`\n")

    def test_comments_name_files_that_exist(self) -> None:
        text = (
            '/* Source: report/page.c, docs/a.md; <cuda/x.h>, linux/net.h. */\nx = "report/x.h";\n'
        )
        self.accepts("", **{"src/report/text.c": text})
        self.accepts("", **{"tests/a.py": '"""Uses report/page.c."""\nx = "report/x.h"\n'})

    def test_a_comment_that_names_a_file_that_is_gone_is_found(self) -> None:
        done = run_on({"src/report/text.c": "\n/*\n * See report/line.h.\n */\n"})
        self.assertIn("src/report/text.c:3: report/line.h does not exist", done.stdout)
        done = run_on({"tests/a.py": "x = 1  # as report/line.c\n"})
        self.assertIn("tests/a.py:1: report/line.c does not exist", done.stdout)

    def test_code_blocks_are_left_alone(self) -> None:
        self.accepts("```\n`report/line.c`\n```\n")

    def test_a_function_is_in_the_file_beside_it(self) -> None:
        self.accepts("1. `report/page.c` `page_line()`\n")
        self.rejects("1. `report/page.c` `page_gone()`\n", "page_gone() is not in any source file")

    def test_a_function_of_another_file_is_found(self) -> None:
        done = run_on({"docs/a.md": "- `text.c` `page_line()`\n", "src/report/text.c": "\n"})
        self.assertIn("page_line() is in src/report/page.c", done.stdout)

    def test_a_function_may_come_before_its_file(self) -> None:
        done = run_on({"docs/a.md": "Calls `page_line()` (`text.c`).\n", "src/text.c": "\n"})
        self.assertIn("page_line() is in src/report/page.c", done.stdout)

    def test_a_file_that_is_not_beside_says_nothing_of_a_function(self) -> None:
        self.accepts("- `text.c` is beside `page_line()`\n", **{"src/report/text.c": "\n"})

    def test_a_function_of_a_library_is_used_somewhere(self) -> None:
        self.accepts("- `page_end()` is no function of `report/page.c`\n")
        self.rejects("- `report/page.c` `page_end()`\n", "is not defined in src/report/page.c")

    def test_links_lead_somewhere(self) -> None:
        self.accepts("[a](a.md#part), [b](https://example.org/x), [c](../src/report/page.c)\n")
        self.rejects("[a](b.md)\n", "docs/a.md:1: link to b.md, which does not exist")

    def test_the_change_log_may_name_what_is_gone(self) -> None:
        done = run_on({"CHANGELOG.md": "`report/line.c`\n"})
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
