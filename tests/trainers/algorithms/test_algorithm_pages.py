"""The pages of training methods: the table holds every method as the code has it, and every link leads somewhere.

``python tests/trainers/algorithms/test_algorithm_pages.py`` writes the table.
"""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
import torch

from turngym.benchmarks.studies.checks.expected_gradients.evidence import cell
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.base.clipped import ClippedConfig
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Need

FOLDER = Path(__file__).parents[3] / "trainers" / "algorithms"
PAGE = FOLDER / "README.md"
BEGIN, END = "writes it from the code -->\n", "<!-- end of table -->"
SOURCES = (r"arXiv \d{4}\.\d{4,5}", r"repository [\w./-]+\w", r"[A-Z]\w+ et al\. \d{4}")
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")


def source(name: str) -> str:
    text = " ".join((sys.modules[ALGORITHMS[name].__module__].__doc__ or "").split())
    found = [match.group() for pattern in SOURCES for match in [re.search(pattern, text)] if match]
    return found[0] if found else ""


def quiet(name: str) -> Algorithm[object]:
    """The method without entropy and divergence, whose needs are settings of all."""
    off = {"entropy_coef": 0.0, "kl_coef": 0.0}
    return build(name, {name: off} if issubclass(ALGORITHMS[name].Config, ClippedConfig) else {})


COSTS = {
    Need.VALUES: "critic",
    Need.REFERENCE_LOGPROBS: "reference pass",
    Need.TEACHER_LOGPROBS: "teacher pass",
    Need.TRAINER_LOGPROBS: "trainer pass",
    Need.SQUARED_PROBABILITIES: "policy pass",
    Need.DIVERGENCES: "policy pass",
    Need.OTHER_PROMPTS: "policy pass",
    Need.GREEDY: "one greedy episode per instance",
    Need.MIXTURES: "one more episode for each",
    Need.NOTES: "one more episode for each",
    Need.SNAPSHOTS: "episodes from snapshots",
    Need.OBSERVATIONS: "logits of observations",
}
OWN_COSTS = {
    "archer": "small critics, replayed turns",
    "dapo": "replacement of groups with equal returns",
    "mappo": "small critic of joint views",
    "s_ppo": "second backward pass",
    "st_ppo": "second backward pass",
}


def cost(name: str) -> str:
    """Networks, passes and episodes beyond one forward and backward pass over the sampled episodes, at defaults."""
    algorithm = build(name)
    needs = algorithm.needs - (build("ppo").needs if isinstance(algorithm, Modifier) else set())
    listed = [text for need, text in COSTS.items() if need in needs]
    listed += [OWN_COSTS[name]] if name in OWN_COSTS else []
    return ", ".join(listed) or "none"


def row(name: str) -> str:
    kind, algorithm = ALGORITHMS[name], quiet(name)
    needs = algorithm.needs
    if isinstance(algorithm, Modifier):
        needs = needs - build("ppo").needs | (needs & {Need.ENTROPY} if name == "epo" else frozenset())
    what = (kind.__doc__ or "").splitlines()[0].rstrip(".")
    listed = ", ".join(sorted(need.value.replace("_", " ") for need in needs)) or "-"
    return f"| {' | '.join([f'[{name}]({name}.md)', what, listed, cost(name), cell(name)])} |"


def table() -> str:
    head = "| name | what | needs | extra cost | evidence |\n|---|---|---|---|---|\n"
    return "\n" + head + "".join(row(name) + "\n" for name in sorted(ALGORITHMS)) + "\n"


def test_the_table_is_that_of_the_code() -> None:
    written = PAGE.read_text("utf8").partition(BEGIN)[2].partition(END)[0]
    assert written == table(), "run: python tests/trainers/algorithms/test_algorithm_pages.py"


def test_every_method_names_its_source() -> None:
    for name in sorted(ALGORITHMS):
        assert source(name), f"the docstring of {ALGORITHMS[name].__module__} names no paper and no repository"


def sections(text: str) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    for name in ["README", *PAGES]:
        text = (FOLDER / f"{name}.md").read_text("utf8")
        for target, anchor in re.findall(r"\]\(([\w.]*\.md)?(?:#([\w-]+))?\)", text):
            path = FOLDER / (target or f"{name}.md")
            assert path.exists(), target
            assert not anchor or anchor in sections(path.read_text("utf8")), anchor


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_formula_source_choices_settings_metrics_and_a_command_that_works(name: str) -> None:
    from turngym.benchmarks.cli.train import parse_train

    text = (FOLDER / f"{name}.md").read_text("utf8")
    assert text.startswith(f"# {name}\n") and name in ALGORITHMS
    for part in ("**When to use it.**", "**Source.**", "**Our choices.**", "**Settings.**", "**Metrics.**"):
        assert part in text, part
    assert re.search(r"^```math\n(.+\n)+```$", text, re.MULTILINE), "a formula"
    commands = re.findall(r"^    turngym train (.*)$", text, re.MULTILINE)
    assert commands
    for command in commands:
        assert name in parse_train(command.split())[0].algorithm.split("+")


def test_the_metrics_and_settings_of_a_page_exist() -> None:
    """Metrics of the credit are those that the method gives; settings between backticks are fields or their values."""
    for name in PAGES:
        import algorithm_batches as properties

        text = (FOLDER / f"{name}.md").read_text("utf8")
        algorithm = properties.made(name)
        batch = properties.batch_of(algorithm, algorithm.collect(lambda **kinds: properties.episodes()))
        metrics = text.partition("**Metrics.**")[2]
        own = {metric for metric in batch.credit.metrics if "/" not in metric}
        of_base: set[str] = set()
        if isinstance(algorithm, Modifier):
            of_base = set(properties.batch_of(algorithm.base).credit.metrics)
        assert set(re.findall(r"`credit/(\w+)`", metrics)) == own - of_base
        inputs = batch.inputs(batch.by_turn())
        nothing = {**inputs.weights, "observation": torch.zeros_like(inputs.advantages)}
        output = algorithm.loss(
            dataclasses.replace(inputs, observed=torch.zeros_like(inputs.action_mask), weights=nothing)
        )
        logged = {*output.metrics, *output.terms}
        assert set(re.findall(r"`loss/(\w+)`", metrics)) <= logged
        fields = {field.name for field in dataclasses.fields(ALGORITHMS[name].Config)}
        settings = text.partition("**Settings.**")[2].partition("**Metrics.**")[0]
        assert {word for word in re.findall(r"`(\w+)`", settings) if "_" in word} <= fields


DEFAULT = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def written(value: object) -> str:
    """A default as the tables have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value) or "(empty)"


def test_the_defaults_of_a_page_are_those_of_the_code_and_name_a_source() -> None:
    for name in sorted(ALGORITHMS):
        text = (FOLDER / f"{name}.md").read_text("utf8")
        rows = DEFAULT.findall(text.partition("| setting | default | source |\n")[2].partition("\n\n")[0])
        of_code = {field.name: written(field.default) for field in dataclasses.fields(ALGORITHMS[name].Config)}
        assert {setting: default for setting, default, _ in rows} == of_code
        assert [setting for setting, *_ in rows] == list(of_code), "in the order of the code, each once"
        assert all(source.strip() for *_, source in rows)


def test_no_method_has_a_dual_clip_that_its_paper_does_not_have() -> None:
    for name in sorted(set(ALGORITHMS) - {"dapo"}):
        assert getattr(ALGORITHMS[name].Config(), "dual_clip", 0) == 0


if __name__ == "__main__":
    before, begin, rest = PAGE.read_text("utf8").partition(BEGIN)
    PAGE.write_text(before + begin + table() + END + rest.partition(END)[2], "utf8")
