# SPDX-License-Identifier: Apache-2.0
"""`/mcp` of `perftracker serve`: messages by HTTP POST, who may send them, the official client."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "serve"))
from served import GOLDEN, LIMIT_S, Answer, Server, ServeTest  # noqa: E402

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(server: Server, body: Any, path: str = "/mcp", **headers: str) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with contextlib.closing(server.connect()) as connection:
        connection.request("POST", path, body=text, headers={**JSON, **named})
        return Answer(connection.getresponse())


def message(method: str, modern: bool = False, **params: Any) -> dict[str, Any]:
    if modern:
        params["_meta"] = META
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def modern(server: Server, method: str, **params: Any) -> Answer:
    headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return post(server, message(method, modern=True, **params), **headers)


class Post(ServeTest):
    def test_both_eras_are_answered(self) -> None:
        server = self.serve(str(GOLDEN))
        old = post(server, message("initialize", protocolVersion="2025-06-18", capabilities={}))
        self.assertEqual(old.status, 200)
        self.assertEqual(old.headers["Content-Type"], "application/json")
        self.assertEqual(old.json()["result"]["protocolVersion"], "2025-06-18")
        done = post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.assertEqual((done.status, done.body), (202, b""))
        listed = modern(server, "tools/list").json()["result"]
        self.assertEqual(listed["resultType"], "complete")
        self.assertNotIn("request_profile", [tool["name"] for tool in listed["tools"]])
        called = modern(
            server, "tools/call", name="get_report", arguments={"report": "figure7.json"},
        ).json()["result"]["structuredContent"]  # fmt: skip
        self.assertEqual(called["findings"][0]["id"], "PT-102")
        self.assertEqual(
            called["url"], f"http://127.0.0.1:{server.port}/reports/{called['report']}"
        )
        page = server.get(f"/reports/{called['report']}")
        self.assertEqual(page.status, 200)

    def test_failures_have_the_status_of_the_protocol(self) -> None:
        server = self.serve(str(GOLDEN))
        headers = {"MCP_Protocol_Version": VERSION, "Mcp_Method": "tools/list"}
        for body, more, status, code in (
            ("{", {}, 400, -32700),
            ("", {}, 400, -32700),
            (message("tools/list", modern=True), {}, 400, -32020),
            (message("tools/list", modern=True), {**headers, "Mcp_Method": "ping"}, 400, -32020),
            (message("tools/list"), headers, 400, -32602),
            (message("no/such", modern=True), {**headers, "Mcp_Method": "no/such"}, 404, -32601),
            (message("no/such"), {}, 200, -32601),
        ):
            answer = post(server, body, **more)
            self.assertEqual((answer.status, answer.json()["error"]["code"]), (status, code), body)
        other = message("tools/list", modern=True)
        other["params"]["_meta"] = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        answer = post(server, other, MCP_Protocol_Version="2031-01-01", Mcp_Method="tools/list")
        self.assertEqual((answer.status, answer.json()["error"]["code"]), (400, -32022))

    def test_only_json_by_post_from_here_is_taken(self) -> None:
        server = self.serve(str(GOLDEN))
        ping = message("ping")
        for method in ("GET", "DELETE", "HEAD", "PUT"):
            answer = server.get("/mcp", method=method)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "POST"), method)
        self.assertEqual(post(server, ping, path="/api/v1/jobs").status, 405)
        for headers, status in (
            ({"Content_Type": "text/plain"}, 415),
            ({"Content_Type": "application/jsonp"}, 415),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 421),
        ):
            self.assertEqual(post(server, ping, **headers).status, status, headers)
        for headers in (
            {"Content_Type": "application/json; charset=utf-8"},
            {"Origin": f"http://127.0.0.1:{server.port}"},
            {"If_None_Match": "*"},
        ):
            self.assertEqual(post(server, ping, **headers).status, 200, headers)

    def test_a_body_that_is_too_long_is_cut_and_the_server_goes_on(self) -> None:
        server = self.serve(str(GOLDEN))
        with self.assertRaises(OSError):
            post(server, "[" * (1 << 20))
        self.assertEqual(post(server, message("ping")).json()["result"], {})
        self.assertEqual(post(server, "[" * 60000).json()["error"]["code"], -32700)
        self.assertEqual(server.end(), 0)

    def test_tokens_are_asked_for(self) -> None:
        path = self.folder / "tokens"
        path.write_text("viewer 0123456789abcdef0123456789abcdef ann\n", encoding="utf-8")
        path.chmod(0o600)
        server = self.serve(str(GOLDEN), "--token-file", str(path))
        self.assertEqual(post(server, message("ping")).status, 401)
        token = "Bearer 0123456789abcdef0123456789abcdef"
        self.assertEqual(post(server, message("ping"), Authorization=token).status, 200)


class OfficialClient(ServeTest):
    SCRIPT = """
import asyncio, json, sys
import mcp

async def main():
    out = {}
    for mode in ("auto", "legacy"):
        async with mcp.Client(sys.argv[1], mode=mode) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool("get_report", {"report": "figure7.json"})
            resource = (await client.list_resources()).resources[0]
            await client.read_resource(resource.uri)
            finding = result.structured_content["findings"][0]["id"]
            out[mode] = [client.protocol_version, len(tools), finding]
    print(json.dumps(out))

asyncio.run(main())
"""

    def test_it_speaks_with_the_server_in_both_eras(self) -> None:
        python = os.environ.get("PERFTRACKER_MCP_PYTHON")
        if python is None and importlib.util.find_spec("mcp") is None:
            self.skipTest("needs the package mcp: pip install mcp, or PERFTRACKER_MCP_PYTHON")
        server = self.serve(str(GOLDEN))
        done = subprocess.run(
            [python or sys.executable, "-c", self.SCRIPT, f"{server.url}mcp"],
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(done.stdout)
        self.assertEqual(out["auto"], [VERSION, 9, "PT-102"])
        self.assertEqual(out["legacy"], ["2025-11-25", 9, "PT-102"])


if __name__ == "__main__":
    unittest.main()
