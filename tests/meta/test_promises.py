"""What the source may not contain: unpickling, the network, fork, and names of this or that machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.meta._modules import MODULES, nodes

ROOT = Path(__file__).parents[2]
FORBIDDEN_IMPORTS = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib",  # they run code from data
    "socket", "ssl", "http", "urllib.request", "requests", "httpx", "ftplib", "smtplib",  # the network
}  # fmt: skip
FORBIDDEN_CALLS = {"eval", "exec", "os.fork", "os.system", "pickle.loads", "pickle.load", "torch.load"}
HOSTS = re.compile(
    "|".join(
        ("py" + "pi.org", "python" + "hosted", "registry" + ".npm", "deb" + ".debian", "/ro" + "ot/", "/wo" + "rk/")
    )
)


def called(node: ast.expr) -> str:
    """Give the dotted name of what is called; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return f"{called(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(code: Iterable[ast.AST]) -> Iterator[str]:
    for node in code:
        if isinstance(node, ast.Import):
            yield from {a.name for a in node.names} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.ImportFrom):
            yield from {node.module or ""} & FORBIDDEN_IMPORTS
        elif isinstance(node, ast.Call):
            yield from {called(node.func)} & FORBIDDEN_CALLS


def test_no_module_unpickles_or_forks_or_speaks_to_a_network() -> None:
    assert [(str(path.relative_to(ROOT)), found) for path in MODULES for found in forbidden(nodes(path))] == []
    code = ast.parse("import pickle\nfrom socket import x\nos.fork()\nimport os")
    assert len([*forbidden(ast.walk(code))]) == 3


def test_no_file_of_the_project_names_a_registry_or_a_path_of_one_machine() -> None:
    listed = [
        p for g in ("forensics", "tests", "docs", "fixtures", "bench") for p in (ROOT / g).rglob("*") if p.is_file()
    ]
    listed += [p for p in ROOT.iterdir() if p.is_file() and p.name not in {".git", ".coverage"}]  # tools write these
    told = [
        p for p in listed
        if p.suffix in {".py", ".md", ".toml", ".lock", ".json", ".jsonl", ".tsv", ".log", ".txt", ""}
        and HOSTS.search(p.read_text(encoding="utf-8", errors="replace"))
    ]  # fmt: skip
    assert told == []
