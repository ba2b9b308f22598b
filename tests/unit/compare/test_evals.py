"""Evaluations of two runs: real or not, comparable or not, and what may have caused it."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from math import comb
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from forensics import pipeline
from forensics.compare.baseline import against
from forensics.compare.decide import Answer
from forensics.compare.diff import diff
from forensics.compare.evals._tests import by_counts, by_errors, holm, mcnemar, paired, two_sided
from forensics.compare.evals.comparison import compare_all
from forensics.compare.model import Section
from forensics.model import Shape

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "fixtures" / "make"))
import evals as made  # noqa: E402 - a script of the fixtures, not a package

CORPUS = ROOT.parent / "shared" / "corpus" / "eval"
STAMP = made.STAMP


def write(
    folder: Path, document: dict[str, Any], samples: bytes | None = None, config: dict[str, Any] | None = None
) -> Path:
    folder.mkdir(parents=True)
    (folder / f"results_{STAMP}.json").write_text(json.dumps(document, indent=2))
    if samples is not None:
        (folder / f"samples_reefs_easy_{STAMP}.jsonl").write_bytes(samples)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder


def section(base: Path, cand: Path) -> Section:
    (found,) = diff([pipeline.ingest_run(base)], pipeline.ingest_run(cand), names=["evals"]).sections
    return found


def by_fractions(fell: int, rose: int) -> float:
    n, k = fell + rose, min(fell, rose)
    return float(min(Fraction(1), 2 * sum(Fraction(comb(n, i), 2**n) for i in range(k + 1))))


@pytest.mark.parametrize(("fell", "rose"), [(0, 0), (1, 0), (3, 3), (12, 3), (40, 61), (0, 25), (300, 240)])
def test_mcnemar_is_the_exact_binomial(fell: int, rose: int) -> None:
    assert mcnemar(fell, rose) == pytest.approx(by_fractions(fell, rose), rel=1e-9)


def test_mcnemar_of_scores_counts_the_documents_that_changed() -> None:
    found = paired(np.array([1.0, 1, 1, 0, 0, 1]), np.array([1.0, 0, 0, 0, 1, 0]))
    assert (found.fell, found.rose, found.n) == (3, 1, 6)
    assert found.delta == pytest.approx(-1 / 3)
    assert found.interval[0] < found.delta < found.interval[1]


def test_the_normal_tail_holds_far_out() -> None:
    for z in (0.0, 0.5, 1.96, 3.0, 4.9):
        assert two_sided(z) == pytest.approx(2 * (1 - NormalDist().cdf(z)), rel=1e-6)
    assert two_sided(6) == pytest.approx(1.973175e-9, rel=1e-5)
    assert two_sided(-10) == pytest.approx(1.523971e-23, rel=1e-5)


def test_holm_keeps_the_order_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_counts_alone_never_give_an_error_of_nothing() -> None:
    found = by_counts((1.0, 20), (1.0, 20))
    assert found is not None
    assert found.se > 0
    assert found.p == pytest.approx(1.0)
    assert by_counts((12.5, 20), (1.0, 20)) is None
    assert by_errors(0.1, 0.0, 0.0) is None


def test_a_bootstrap_gives_the_same_p_each_time_and_about_that_of_t() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(0.5, 0.2, 300)
    cand = base - 0.02 + rng.normal(0, 0.12, 300)
    first, second = paired(base, cand), paired(base, cand)
    assert first.p == second.p
    gaps = cand - base
    t = abs(gaps.mean()) / (gaps.std(ddof=1) / np.sqrt(300))
    assert first.p == pytest.approx(2 * (1 - NormalDist().cdf(t)), abs=0.01)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_scipy_agrees(delta: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for fell, rose in ((0, 3), (17, 9), (210, 160)):
        assert mcnemar(fell, rose) == pytest.approx(stats.binomtest(min(fell, rose), fell + rose).pvalue, rel=1e-9)
    found = by_errors(delta, 0.012, 0.014)
    assert found is not None
    assert found.p == pytest.approx(2 * stats.norm.sf(delta / np.hypot(0.012, 0.014)), rel=1e-6)


def test_a_fall_that_is_real_is_a_regression_with_both_places(tmp_path: Path) -> None:
    base = write(tmp_path / "good", made.version_04())
    cand = write(tmp_path / "bad", made.version_04(shift=-0.08))
    found = section(base, cand)
    assert found.answer is Answer.REGRESSION
    assert "reefs acc" in found.headline
    assert [e.locator.line for e in found.evidence] == [4, 4]


def test_a_difference_within_its_error_is_not_called_one(tmp_path: Path) -> None:
    found = section(
        write(tmp_path / "good", made.version_04()), write(tmp_path / "other", made.version_04(shift=-0.005))
    )
    assert found.answer is Answer.INCONCLUSIVE
    assert "no real difference" in found.headline


def test_other_few_shot_examples_are_not_comparable_and_the_group_inherits_it(tmp_path: Path) -> None:
    base = write(tmp_path / "good", made.version_04())
    cand = write(tmp_path / "bad", made.version_04(shift=0.05, shots=5, version=2.0))
    pairs = compare_all([pipeline.ingest_run(base)], pipeline.ingest_run(cand))
    by_task = {p.key[0]: p for p in pairs}
    assert [u.words for u in by_task["reefs_easy"].settings.blocks] == ["task version 1 → 2", "few-shot examples 0 → 5"]
    assert not by_task["reefs"].comparable
    assert by_task["reefs"].p_holm is None
    assert by_task["sums"].comparable
    found = section(base, cand)
    text = " ".join(text for label, text in found.facts if label == "not alike")
    assert f"results_{STAMP}.json:" in text


def test_a_group_stands_for_its_members_in_the_metric_that_it_has(tmp_path: Path) -> None:
    run = pipeline.ingest_run(write(tmp_path / "good", made.version_04()))
    inside = {p.name for p in compare_all([run], run) if p.member}
    assert inside == {"reefs_easy acc", "reefs_hard acc"}


def test_equal_settings_with_values_far_apart_are_said_to_have_no_recorded_cause(tmp_path: Path) -> None:
    base = write(tmp_path / "good", made.version_04())
    found = section(base, write(tmp_path / "bad", made.version_04(shift=-0.08)))
    assert any(note.startswith("cause not recorded: reefs acc") for note in found.notes)


def test_a_limit_on_one_side_is_not_comparable(tmp_path: Path) -> None:
    pairs = compare_all(
        [pipeline.ingest_run(write(tmp_path / "good", made.version_04()))],
        pipeline.ingest_run(write(tmp_path / "bad", made.version_04(n=50))),
    )
    words = {u.words for p in pairs for u in p.settings.blocks}
    assert {"documents 1600 → 50", "limit none → 50.0"} <= words


def test_other_decoding_blocks_only_tasks_that_generate(tmp_path: Path) -> None:
    hot = made.version_04()
    hot["configs"]["sums"]["generation_kwargs"]["temperature"] = 0.9  # type: ignore[index] - made above
    hot["config"]["gen_kwargs"] = "temperature=0.9"  # type: ignore[index] - made above
    pairs = compare_all(
        [pipeline.ingest_run(write(tmp_path / "good", made.version_04()))],
        pipeline.ingest_run(write(tmp_path / "bad", hot)),
    )
    assert {p.key[0] for p in pairs if not p.comparable} == {"sums"}


def test_samples_of_both_sides_find_what_errors_cannot(tmp_path: Path) -> None:
    def document(samples: bytes) -> dict[str, Any]:
        scores = [json.loads(line)["acc"] for line in samples.decode().splitlines()]
        whole = made.version_04(n=len(scores))
        easy = whole["results"]["reefs_easy"]  # type: ignore[index] - made above
        easy["acc,none"] = sum(scores) / len(scores)
        easy["acc_stderr,none"] = 0.0155
        return whole

    left, right = made.samples("reefs_easy", 1000, seed=1), made.samples("reefs_easy", 1000, seed=2, fall=0.03)
    unpaired = section(write(tmp_path / "a", document(left)), write(tmp_path / "b", document(right)))
    assert unpaired.answer is Answer.INCONCLUSIVE
    for folder, document_, samples in (("c", document(left), left), ("d", document(right), right)):
        del document_["groups"], document_["group_subtasks"], document_["results"]["reefs"]
        write(tmp_path / folder, document_, samples)
    found = section(tmp_path / "c", tmp_path / "d")
    assert found.answer is Answer.REGRESSION
    assert found.numbers["paired"] == 1
    assert "McNemar" in dict(found.facts)["worse"]


def test_other_prompts_for_the_same_documents_are_not_comparable(tmp_path: Path) -> None:
    text = made.samples("reefs_easy", 40, seed=1)
    for folder, data in (("a", text), ("b", text.replace(b'"prompt_hash": "', b'"prompt_hash": "0'))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "samples_reefs_easy.jsonl").write_bytes(data)
    found = section(tmp_path / "a", tmp_path / "b")
    assert found.answer is Answer.INCONCLUSIVE
    assert "other words" in found.headline


def test_the_most_plausible_change_of_the_configuration_is_named(tmp_path: Path) -> None:
    good = {"learning_rate": 3e-4, "vocab_size": 32000, "run_name": "a", "seed": 1}
    found = section(
        write(tmp_path / "good", made.version_04(), config=good),
        write(tmp_path / "bad", made.version_04(shift=-0.08), config={**good, "vocab_size": 32064, "run_name": "b"}),
    )
    assert "most plausible cause: tokenizer" in found.notes[0]
    assert not any("not recorded" in note for note in found.notes)


def test_nothing_on_disk_differs_is_an_answer_with_what_to_record(tmp_path: Path) -> None:
    config = {"learning_rate": 3e-4, "vocab_size": 32000}
    found = section(
        write(tmp_path / "good", made.version_04(), config=config),
        write(tmp_path / "bad", made.version_04(shift=-0.08), config=config),
    )
    assert "nothing recorded on disk differs" in found.notes[0]


def test_a_triage_with_a_baseline_says_that_it_is_worse_and_why(tmp_path: Path) -> None:
    good = {"learning_rate": 3e-4, "vocab_size": 32000}
    base = write(tmp_path / "good", made.version_04(), config=good)
    cand = write(tmp_path / "bad", made.version_04(shift=-0.08), config={**good, "vocab_size": 32064})
    report = pipeline.report_of(against(pipeline.ingest_run(cand), pipeline.ingest_run(base)))
    (found,) = (f for f in report.findings if f.rule == "EVL020")
    assert "vocab" in found.likely[0]
    assert found.evidence[1].source.endswith(f"good/results_{STAMP}.json")
    assert report.verdict.shape is Shape.BAD_EVAL


@pytest.mark.parametrize(
    ("setting", "step"),
    [
        (("git_commit", "4f1c9aa", "b20e771"), "git bisect start b20e771 4f1c9aa"),
        (("torch_version", "2.4.1", "2.5.0"), "Undo "),
    ],
)
def test_between_two_commits_the_one_that_made_it_worse_is_searched(
    tmp_path: Path, setting: tuple[str, str, str], step: str
) -> None:
    name, good, bad = setting
    base = write(tmp_path / "good", made.version_04(), config={name: good})
    cand = write(tmp_path / "bad", made.version_04(shift=-0.08), config={name: bad})
    report = pipeline.report_of(against(pipeline.ingest_run(cand), pipeline.ingest_run(base)))
    (found,) = (f for f in report.findings if f.rule == "EVL020")
    assert step in found.next[0]


def test_a_setting_that_harness_and_task_both_state_is_told_once(tmp_path: Path) -> None:
    documents = [made.version_04(), made.version_04()]
    for document, heat in zip(documents, (0.0, 0.9), strict=True):
        document["config"]["gen_kwargs"] = f"temperature={heat:g}"
        for task in document["configs"].values():
            task.update(output_type="generate_until", generation_kwargs={"temperature": heat})
    base, cand = (write(tmp_path / name, doc) for name, doc in zip(("good", "bad"), documents, strict=True))
    report = pipeline.report_of(against(pipeline.ingest_run(cand), pipeline.ingest_run(base)))
    (found,) = (f for f in report.findings if f.rule == "EVL021")
    assert found.title.count("temperature") == 1


def test_a_triage_with_a_baseline_evaluated_otherwise_gives_no_p(tmp_path: Path) -> None:
    base = write(tmp_path / "good", made.version_04(shots=5))
    cand = write(tmp_path / "bad", made.version_04(shift=-0.08))
    report = pipeline.report_of(against(pipeline.ingest_run(cand), pipeline.ingest_run(base)))
    assert [f.rule for f in report.findings if f.rule in ("EVL020", "EVL021")] == ["EVL021"]


def test_a_regression_of_evaluations_decides_where_throughput_cannot_be_compared(tmp_path: Path) -> None:
    runs = [write(tmp_path / n, made.version_04(shift=s)) for n, s in (("good", 0.0), ("bad", -0.08))]
    base, cand = (pipeline.ingest_run(run) for run in runs)
    assert diff([base], cand).answer is Answer.REGRESSION
    (row, *_) = diff([base], cand, names=["evals"]).sections[0].rows
    assert (row["task"], row["metric"], row["in_group"], row["not_comparable"]) == ("reefs", "acc", 0, None)


def test_results_that_state_no_settings_are_said_to_be_unchecked(tmp_path: Path) -> None:
    bare = {"reefs_easy": {"acc,none": 0.5, "acc_stderr,none": 0.0125, "alias": "reefs_easy"}}
    found = section(write(tmp_path / "good", made.version_04()), write(tmp_path / "bad", bare))
    assert found.answer is Answer.REGRESSION
    assert any("cannot be checked" in note for note in found.notes)


def test_runs_without_evaluations_have_no_section(tmp_path: Path) -> None:
    base = write(tmp_path / "good", made.version_04())
    (tmp_path / "none").mkdir()
    found = diff([pipeline.ingest_run(base)], pipeline.ingest_run(tmp_path / "none"), names=["evals"])
    assert found.sections == ()


@pytest.mark.skipif(not CORPUS.exists(), reason="no real results at hand")
def test_every_pair_of_real_results_of_one_model_agrees_with_a_reference() -> None:
    stats = pytest.importorskip("scipy.stats")
    runs: dict[str, list[Any]] = {}
    for path in sorted(CORPUS.rglob("*.json")):
        run = pipeline.ingest_run(path)
        runs.setdefault(str(run.collect("evals")["model"][0]), []).append(run)
    count = decided = 0
    for same in runs.values():
        for base, cand in ((a, b) for i, a in enumerate(same[:12]) for b in same[i + 1 : 12]):
            pairs = compare_all([base], cand)
            ps = []
            for pair in pairs:
                if pair.p_holm is None:
                    continue
                assert pair.tested is not None
                if pair.tested.method == "z of standard errors":
                    se = np.hypot(pair.base["stderr"], pair.cand["stderr"])
                    truth = 2 * stats.norm.sf(abs(pair.cand["value"] - pair.base["value"]) / se)
                    assert pair.tested.p == pytest.approx(truth, rel=1e-5, abs=1e-300)
                ps.append(pair.tested.p)
            kept = [p.p_holm for p in pairs if p.p_holm is not None]
            assert kept == pytest.approx(holm(ps))
            count, decided = count + 1, decided + bool(ps)
    print(f"{count} pairs of files of one model, {decided} with a test")  # noqa: T201 - the figure is wanted
    assert count > 0
