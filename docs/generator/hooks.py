"""Hooks of MkDocs: pages next to the code become pages of the site, and the long menus are filled in.

Links are written as they work in a clone. A link between pages is kept, a picture that a page next to the code shows is
copied, and a link to any other file of the repository becomes plain text.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")

_ARXIV = re.compile(r"(?<!\[)\barXiv (\d{4}\.\d{4,5})\b")

_CELL_CODE = re.compile(r"(?<=\| )`[^`\n]*\\\|[^`\n]*`")
"""Code at the start of a table's cell with an escaped bar, where Markdown in Python shows the backslash."""


_CODE = re.compile(r"<code[^>]*>[^<]*(?:<(?!/code>)[^<]*)*</code>")
_OPTION = re.compile(r"(?<=[\s>])--[a-z][\w.-]*")


def _first(*candidates: str) -> str:
    return next((each for each in candidates if (ROOT / each).exists()), candidates[0])


PACKAGES = ("turngym", "turngym.envs", "turngym.wrappers", "turngym.agents", "turngym.trainers", "turngym.benchmarks")
API = "reference/api/"
METHODS = "trainers/algorithms"
REWARD_MODELS = "trainers/reward_models"
INTEGRATIONS = _first("trainers/integrations", "trainers/integrations")
SINGLE = {
    "trainers/METRICS.md": "reference/metrics.md",
    "trainers/PRESETS.md": "reference/presets.md",
    "benchmarks/template/plugins.md": "reference/plugins.md",
    "SECURITY.md": "reference/security.md",
    "CHANGELOG.md": "reference/changes.md",
    "benchmarks/results/README.md": "reference/results.md",
    "benchmarks/results/claims.md": "results/claims.md",
    "benchmarks/results/claims_embedded.md": "results/claims_embedded.md",
    "benchmarks/results/learning.md": "results/learning.md",
    "benchmarks/results/methods.md": "results/methods.md",
    "benchmarks/results/worlds.md": "results/worlds.md",
    "benchmarks/results/worlds_of_work.md": "results/worlds_of_work.md",
    "benchmarks/results/experts.md": "results/experts.md",
}


def pages() -> dict[str, str]:
    """Return file of the repository -> page of the site."""
    found = dict(SINGLE)
    for folder, target in (
        (METHODS, "methods"),
        (REWARD_MODELS, "methods/reward-models"),
        (INTEGRATIONS, "integrations"),
    ):
        for path in sorted((ROOT / folder).glob("*.md")):
            name = "index.md" if path.name == "README.md" else path.name
            found[f"{folder}/{path.name}"] = f"{target}/{name}"
    return found


def rewritten(source: str, target: str, text: str, known: dict[str, str], pictures: set[str]) -> str:
    """Return a page with its links as they must be on the site; collect the images that it shows."""

    def link(found: re.Match[str]) -> str:
        mark, label, path, anchor = found.groups()
        if "://" in path:
            return found[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if place in known:
            new = posixpath.relpath(known[place], posixpath.dirname(target) or ".")
        elif mark and (ROOT / place).is_file():
            pictures.add(place)
            new = posixpath.relpath(f"assets/{posixpath.basename(place)}", posixpath.dirname(target) or ".")
        else:
            return f"{label} (`{place}`)" if label.strip("`") != place else f"`{place}`"
        return f"{mark}[{label}]({new}{anchor or ''})"

    text = _ARXIV.sub(r"[arXiv \1](https://arxiv.org/abs/\1)", text)
    text = _CELL_CODE.sub(lambda found: found[0].replace("\\|", "|"), text)
    return _LINK.sub(link, _with_space_before_lists(text))


def _with_space_before_lists(text: str) -> str:
    """Return the text with an empty line before every list, which Markdown in Python needs."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        starts = line.startswith("- ") and not is_code and bool(lines) and bool(lines[-1].strip())
        if starts and not lines[-1].startswith(("- ", "  ")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def api() -> dict[str, str]:
    """Return the pages of the public names: one of each package, and a table of them."""
    rows = ["| module | names |", "| --- | --- |"]
    texts = {}
    for package in PACKAGES:
        source = ROOT.joinpath("turngym", *package.split(".")[1:], "__init__.py").read_text("utf8")
        listed: ast.expr = ast.List([])
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                listed = node.value
        names = [name for name in ast.literal_eval(listed) if not name.startswith("_")]
        folder = ROOT.joinpath("turngym", *package.split(".")[1:])
        hidden = [name for name in names if (folder / f"{name}.py").exists()]  # by the module of the same name
        members = "\n".join(f"        - {name}" for name in names if name not in hidden)
        alone = "".join(f"\n::: {package}.{name}.{name}\n" for name in hidden)
        texts[f"{API}{package}.md"] = f"# {package}\n\n::: {package}\n    options:\n      members:\n{members}\n{alone}"
        anchors = {name: f"{name}.{name}" if name in hidden else name for name in names}
        links = ", ".join(f"[{name}](api/{package}.md#{package}.{anchors[name]})" for name in names)
        rows.append(f"| [{package}](api/{package}.md) | {links} |")
    intro = "# Python API\n\nThe public names, by module. Everything else may change without notice."
    return {"reference/api.md": intro + "\n\n" + "\n".join(rows) + "\n", **texts}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and images that are next to the code."""
    known = pages()
    pictures: set[str] = set()
    for target, content in api().items():
        files.append(File.generated(config, target, content=content))
    for source, target in known.items():
        text = rewritten(source, target, (ROOT / source).read_text("utf8"), known, pictures)
        files.append(File.generated(config, target, content=text))
    for place in sorted(pictures):
        files.append(File.generated(config, f"assets/{posixpath.basename(place)}", content=(ROOT / place).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead the links of the documentation's own pages, which are right in a clone, to the site's pages."""
    if page.file.src_uri.startswith("reference/"):
        page.meta.setdefault("search", {"boost": 0.2})  # guides are found first
    source = f"docs/{page.file.src_uri}"
    if not (ROOT / source).is_file():
        return markdown
    inside = (str(path.relative_to(DOCS)) for path in DOCS.rglob("*.*"))
    known = pages() | {f"docs/{each}": each for each in inside}
    return rewritten(source, page.file.src_uri, markdown, known, set())


def on_page_content(html: str, **_: Any) -> str:
    """Mark the options in code, which must not break after their hyphens."""
    return _CODE.sub(lambda code: _OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the long menus."""
    environments = sorted(
        path.name for path in (ROOT / "docs" / "environments").glob("*.md") if path.name != "index.md"
    )
    targets = sorted(pages().values())
    menus: dict[str, list[Any]] = {
        "Environments": ["environments/index.md", *(f"environments/{name}" for name in environments)],
        "Methods": [*_menu(targets, "methods/"), {"Reward models": _menu(targets, "methods/reward-models/")}],
        "Integrations": _menu(targets, "integrations/"),
    }
    menus["Methods"].append({"Results": _menu(targets, "results/")})
    modules: list[Any] = [{package: f"{API}{package}.md"} for package in PACKAGES]
    for section in config.nav or []:
        if "Reference" in section:
            section["Reference"].append({"Modules": modules})
        for name in section:
            section[name] = menus.get(name, section[name])
    return config


def _menu(targets: list[str], folder: str) -> list[str]:
    inside = [each for each in targets if each.startswith(folder) and "/" not in each[len(folder) :]]
    return sorted(inside, key=lambda each: (not each.endswith("/index.md"), each))
