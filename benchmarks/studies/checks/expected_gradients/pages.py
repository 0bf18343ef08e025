"""Evidence and tables of ``bias.json`` on the method pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from turngym.benchmarks.studies.checks.expected_gradients.evidence import sentence
from turngym.benchmarks.studies.harness import RESULTS, ROOT

RESULT = RESULTS / "bias.json"
PAGES = ROOT / "trainers" / "algorithms"
BEGIN = "<!-- python benchmarks/studies/checks/bias.py --pages writes this -->\n"
END = "<!-- end of expected gradient -->\n"

_CLASSES = {
    "unbiased": "Unbiased",
    "proportional": "Unbiased up to a constant factor",
    "vanishing": "Biased in small batches; the bias vanishes as the batch grows",
    "biased": "Biased, even in large batches",
}
KINDS = ("one_group", "large_batch")
_HEADS = {
    "credit": ("reason", "Sources of bias, each in isolation:"),
    "normalisation": ("`normalisation`", "Normalisation of the loss, with leave-one-out advantages:"),
    "ratio": ("`ratio`", "Level of the importance ratio, at the first update, where all ratios are 1:"),
    "divergence": (
        "estimator",
        "KL to a reference policy and entropy, without any reward. In a reward, k2 and k3 have almost\n"
        "no gradient near the reference policy and may lead away from it; in a loss all treat states as fixed:",
    ),
    "group": (
        "group",
        "Group mean as the baseline (`dr_grpo` with `constant=1`), by group size:",
    ),
    "sampler": ("correction", "Episodes of a sampler that differs from the trainer, with leave-one-out advantages:"),
}


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 0.1 else f"{value:.3f}"


def _cells(figure: Mapping[str, float]) -> str:
    return f"{figure['cosine']:.4f} | {_number(figure['ratio'])} | {_number(figure['bias']) if figure['bias'] else '0'}"


def objective_text(objective: Mapping[str, float]) -> str:
    """Return the description of an objective.

    >>> objective_text({"discount": 0.9, "penalty": 0.1, "reward_divergence": 0, "divergence": 0, "entropy": 0})
    'the return, discounted by 0.9 per turn, less 0.1 for each invalid action'
    """
    if not objective.get("reward", 1):
        return "the negative KL to the teacher at each token"
    found = "the return"
    if objective["discount"] != 1:
        found += f", discounted by {objective['discount']:g} per turn"
    parts = {
        "penalty": "less {:g} for each invalid action",
        "reward_divergence": "less {:g} times the KL to the reference policy",
        "divergence": "less {:g} times the KL to the reference policy",
        "entropy": "plus {:g} times the entropy",
    }
    return ", ".join([found, *(text.format(objective[key]) for key, text in parts.items() if objective[key])])


def section(found: Mapping[str, Any]) -> str:
    """Return the section of a method's page."""
    base, _, modifier = found["algorithm"].partition("+")
    around = f" around `{base}` with {_settings(found['settings'])}" if modifier else ""
    text = (
        f"**Expected gradient.** {_CLASSES[found['class']]}{around}. The objective is "
        f"{objective_text(found['objective'])}. Its gradient compared with the expected first "
        "update in an [enumerable environment](README.md#expected-gradients):"
    )
    lines = [_filled(text), "", *_head("", has_limit=True), _row("defaults", found["defaults"])]
    lines += [_row(f"then without: {each['reason']} ({each['without']})", each) for each in found["steps"]]
    return "\n".join([*lines, *(["", _filled(found["note"])] if found["note"] else [])]) + "\n"


def _filled(text: str) -> str:
    return fill(text, 118, break_long_words=False, break_on_hyphens=False)


def _head(first: str, *, has_limit: bool) -> list[str]:
    limit = " large batches: cosine | ratio of norms | bias |" if has_limit else ""
    return [
        f"| {first} | groups of two: cosine | ratio of norms | bias |{limit}".replace("|  |", "| |"),
        "|---" * (7 if has_limit else 4) + "|",
    ]


def _row(first: str, figures: Mapping[str, Any]) -> str:
    return f"| {first} | " + " | ".join(_cells(figures[kind]) for kind in KINDS if kind in figures) + " |"


def _settings(settings: Mapping[str, Any]) -> str:
    words = [f"`{name}={str(value).lower() if isinstance(value, bool) else value}`" for name, value in settings.items()]
    return ", ".join(words)


def _overview(content: Mapping[str, Any]) -> str:
    """Return the section of the page about all methods."""
    lines = []
    for kind, text in _CLASSES.items():
        names = [f"[{name}]({name}.md)" for name, found in content["methods"].items() if found["class"] == kind]
        lines.append(f"- {text}: {', '.join(names)}.")
    for table, (head, text) in _HEADS.items():
        rows = content["parts"][table]
        lines += ["", text, "", *_head(head, has_limit="large_batch" in rows[0])]
        lines += [_row(row["part"], row) for row in rows]
    return "\n".join(lines) + "\n"


def _page_with(text: str, block: str, *, is_last: bool) -> str:
    """Return a page with its block replaced where it is, or moved to the end."""
    whole = f"{BEGIN}\n{block}\n{END}"
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{after.lstrip()}".rstrip() + f"\n\n{whole}" if is_last else before + whole + after


def pages() -> dict[Path, str]:
    """Return the updated text of every page."""
    content = json.loads(RESULT.read_text("utf8"))
    blocks = {
        PAGES / f"{name}.md": f"{_filled(sentence(name))}\n\n{section(found)}"
        for name, found in content["methods"].items()
    }
    blocks[PAGES / "README.md"] = _overview(content)
    return {
        path: _page_with(path.read_text("utf8"), block, is_last=path.name != "README.md")
        for path, block in blocks.items()
    }


def write_pages() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, "utf8")
