"""Names of scores: which keys of a result are one, the task in a name with two parts, and which way each is better."""

from __future__ import annotations

import re

#: Shares of documents, 1 being best.
_SHARES = (
    r"acc(?:uracy)?(?:_(?:norm|char|token|raw|mutual_info))?|mc1|(?:quasi_|prefix_)*(?:exact_match|em)|p?qem"
    r"|pass[@_]?(?:at_?)?\d+|maj[@_]?(?:at_?)?\d+|(?:length_controlled_)?win_?rate|(?:success|solve|resolve|pass)_rate"
    r"|(?:resolved|correct)_(?:share|ratio|rate|pct)|knn_acc\w*|top[_-]?[1-9]\d?(?:_acc\w*)?|(?:inst|prompt)_level_\w+_acc"
)
_HIGHER = (
    r"(?:micro_|macro_|weighted_)?f1(?:_score|_(?:micro|macro|weighted))?|mcc|matthews_correlation|spearmanr?|pearsonr?"
    r"|(?:sacre)?bleu(?:[_-]?[1-4])?|chrf(?:\+\+|pp)?|rouge[_-]?(?:[1-9]|l(?:sum)?)(?:_f\w*)?|meteor|comet|bert_?score"
    r"|mc2|score|main_score|primary_score|ndcg(?:[@_]?(?:at_?)?\d+)?|mrr|m?ap(?:[@_]?\d+)?|recall(?:[@_]?\d+)?|precision"
    r"|auc|auroc|roc_auc|m?iou|psnr|ssim|elo"
)
_LOWER = (
    r"(?:word_|byte_|token_)?(?:ppl|perplexity)|bits_per_(?:byte|char)|bp[bc]|[wct]er|mae|mse|rmse|brier(?:_score)?"
    r"|toxicity|hallucination|fid"
)
_SPLIT = r"(?:eval|test|predict|val(?:id(?:ation)?)?|dev|heldout|mean|avg|average|overall|total|final|all)"
_NAME = re.compile(rf"(?i)(?:(?:{_SPLIT}[_/. -])*)(?P<metric>{_SHARES}|{_HIGHER}|{_LOWER})(?:\s*\(?%\)?)?")
_LOSS = re.compile(r"(?i)(?:eval|test|val(?:id(?:ation)?)?|heldout)[_/. -](?P<metric>loss|nll)")
_TASK_AND_NAME = re.compile(rf"(?i)(?P<task>.*\w)[_/. :|-](?P<metric>{_SHARES}|{_HIGHER}|{_LOWER})")
_SHARE, _UP, _DOWN = (re.compile(rf"(?i)(?:{one})") for one in (_SHARES, _HIGHER, _LOWER))
#: A bound or a goal is no result, and the best so far is another evaluation's.
_BOUND = re.compile(
    r"(?i)(?:^|[_/. -])(?:min(?:imum)?|max(?:imum)?|target|goal|best|threshold|required|expected|train(?:ing)?|std"
    r"|stderr|weight|compute|log|report|use|early|monitor|metric)(?:$|[_/. -])"
)
_MOST_CHARS = 200


def metric_of(key: str) -> tuple[str | None, str] | None:
    """The task that a key names, if it does, and its metric: `gsm8k_accuracy`, `eval/f1`, `acc,none`; else None."""
    name = key.partition(",")[0].strip()
    if not name or len(name) > _MOST_CHARS or _BOUND.search(name):
        return None
    if (plain := _NAME.fullmatch(name) or _LOSS.fullmatch(name)) is not None:
        return None, plain["metric"]
    both = _TASK_AND_NAME.fullmatch(name)
    return (both["task"], both["metric"]) if both is not None else None


def is_share(metric: str) -> bool:
    """Whether a metric is a share of documents, so that its error follows from their number."""
    return _SHARE.fullmatch(metric) is not None


def is_higher_better(metric: str) -> bool | None:
    """Direction of a metric by its name; None where the name does not tell."""
    if _SHARE.fullmatch(metric) or _UP.fullmatch(metric):
        return True
    return False if _DOWN.fullmatch(metric) or metric.lower() in ("loss", "nll") else None
