"""Every form of a secret is found wherever it stands, and what is none is left alone."""

from __future__ import annotations

import random
import re
import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.io.secrets import (
    HIDDEN,
    LEAST_BITS,
    LEAST_CHARS,
    Form,
    bare_patterns,
    forms,
    is_setting,
    looks_random,
    names_a_secret,
    needles,
    without_secrets,
)
from tests.made_secrets import ALPHABETS, made, planted

SEED = 20330102
SECRETS = list(planted(SEED))
SHAPES = [secret for secret in SECRETS if secret.has_shape]
BY_NAME = [form for form in forms() if form.kind in ("named", "hinted")]
#: Templates of a line; {k} is the variable, {v} the value, {f} the flag of the same name.
GIVEN = (
    "{k}={v}", "export {k}={v}", "{k}='{v}'", "{k}: {v}", "  {k}: '{v}'", '{{"{k}": "{v}"}}', "--{f} {v} --lr 0.1",
    "--{f}={v}", "['--{f}', '{v}']", "Namespace(lr=0.1, {k}='{v}', seed=3)", "setenv {k} {v}",
    "os.environ['{k}'] = '{v}'", '{{"name": "{k}", "value": "{v}"}}', "'{k}' => '{v}'", "docker run -e {k}={v} img",
)  # fmt: skip
BARE = (
    "{v}", "ERROR: 401 for {v} at step 3", "got {v}, retrying", "'{v}'", "({v})", "key {v}.", "a\\n{v}\\nb",
    "x={v};y=2", "\x1b[31m{v}\x1b[0m",
)  # fmt: skip
ORDINARY = (
    "num_tokens=4096", "tokenizer: gpt2", "pad_token_id=0", "max_tokens_per_batch=8192", "key=loss", "eos_token=</s>",
    "tokens_per_sec=51200", "secret_sauce_lr=0.1", "step 412 | loss 2.3100 | grad_norm 1.05e+02 | lr 3.0e-04",
    "tokens per second: 51200", "num_key_value_heads: 8", "KeyError: 'model.layers.0.weight'", "key: value",
    "--tokenizer meadow/pieces --key-dim 64", "special_tokens_map.json", "unexpected token: ',' in line 4",
    "consumed tokens: 123456789012", "key_padding_mask shape [4, 128]", "task-key embedding", "api_key=None",
    "password: null", "hf_transfer enabled", "risk-averse desk-lamp", "token: 3.491758e+09", "--api-key EMPTY",
    "store_based_barrier_key:2 to store for rank: 3", "key:/default_pg/0//cpu//0/3 address 10.0.0.1",
    "cache_key=5f2a9c7e41b84c0db2", "api_key=os.environ['OPENAI_API_KEY']", "token=config.hub_token",
    "password=getpass.getpass()", "secrets: 3", "api_key: ${OPENAI_API_KEY}", "export HF_TOKEN=$HF_TOKEN",
    "token=<token>", "bos_token: <|begin_of_text|>", "unk_token='[UNK]'", "image_token=<image>", "add_bos_token=True",
    "tie_word_embeddings=False use_auth_token=False", "Invalid password: the server closed the connection",
    "Missing api_key: set the variable first", "early_stopping.key: eval_loss", "metric_key: eval/accuracy_top1",
    "sort_key=length key=train/loss_step_1000_rank_3", "model=meta-llama/Llama-3.1-8B-Instruct",
    "git commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "sha256:" + "ab12" * 16, "run id q7x8y9z0 in group 3",
    "checkpoint-1000/model-00001-of-00004.safetensors", "CUDA out of memory. Tried to allocate 4.00 GiB",
    "ProcessGroupNCCL.cpp:616 WorkNCCL(SeqNum=982, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000)",
    "tcp://127.0.0.1:29500", "https://example.org/docs/index.html?page=3", "s3://bucket/run/step=1000/key=a/part.bin",
    "@torch.compile(mode='max-autotune')", "numpy@2.1.0", "label_smoothing=0.1 ignore_index=-100",
    "backward_pass=12.5ms",
    "forward_pass: 31", "auth=munge", "compat=1", "path: /data/tokens/shard_0001.bin", "pat=3", "sig=0.1",
    "bypass: off",
    "ACCURACY 0.81 at SKIP", "sk-learn-compatible-estimators", "SG.train.loss", "hvs.mean", "v1.0-rc1", "glm-4-9b-chat",
    "dapper", "akin to", "eyJ", "pypi-mirror", "npm_config_cache=/tmp", "Model.forward_hooks.registered",
    "1234567890:AB", "key-value-cache", "hash key collision in bucket 4", "monkey=3 turkey=4 hockey: 5",
    "the bearer of this node", "wandb login succeeded", "cookie: no", "docker login succeeded", "password expired",
    "trainer.keys=['loss', 'lr']", "state_dict keys: ['a', 'b']", "missing_keys=[] unexpected_keys=['lm_head.weight']",
    "loss/secret_holdout: 2.31", "token_type_ids tensor", "vocab.token_to_id('<pad>')", "next_token=1234",
    "token = tokens[i]", "passwordless ssh to 8 nodes", "credential helper not found", "auth_type: none",
)  # fmt: skip


def lines(templates: tuple[str, ...], name: str, value: str) -> list[str]:
    return [form.format(k=name, v=value, f=name.replace("_", "-")) for form in templates]


def test_the_corpus_is_of_more_than_120_forms_and_60_ordinary_texts() -> None:
    assert len(SECRETS) >= 120
    assert len(ORDINARY) >= 60
    assert {form.kind for form in forms()} == {"shape", "line", "person", "named", "hinted", "setting"}


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.name)
def test_a_secret_that_is_given_to_a_name_is_hidden_in_every_spelling(secret) -> None:  # noqa: ANN001 - made above
    quoted = '"' in secret.value
    told = lines(GIVEN[:1] if quoted else GIVEN, secret.name, secret.value)
    assert [line for line in told if secret.seen_in(without_secrets(line))] == []


@pytest.mark.parametrize("secret", SHAPES, ids=lambda secret: secret.name)
def test_a_secret_with_a_shape_is_hidden_without_a_name(secret) -> None:  # noqa: ANN001 - made above
    told = lines(BARE, secret.name, secret.value)
    assert [line for line in told if secret.seen_in(without_secrets(line))] == []


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("form", forms(), ids=lambda form: form.name)
def test_a_near_miss_of_a_form_stays(form: Form) -> None:
    assert form.source
    assert form.near_misses
    rng = random.Random(SEED)
    for near in form.near_misses:
        text, _ = made(near, rng)
        assert form.kind == "setting" or without_secrets(text, persons=True) == text


@pytest.mark.parametrize("form", [f for f in forms() if f.kind == "shape" and f.examples], ids=lambda form: form.name)
def test_each_needle_is_needed_and_announces_its_form(form: Form) -> None:
    rng = random.Random(SEED)
    texts = [made(example, rng)[0].partition("=")[2].lower() for example in form.examples]
    if form.needles:
        assert all(any(needle in text for needle in form.needles) for text in texts)
        assert all(needle == needle.lower() for needle in form.needles)
    else:
        told = pl.Series([made(example, rng)[0] for example in form.examples])
        assert any(told.str.contains(pattern).all() for pattern in bare_patterns())


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("wandb login --relogin {h40}", 1),
        ("wandb.login(key='{h40}')", 1),
        ("Authorization: Basic {s24}", 1),
        ("Authorization: Bearer {x24}", 1),
        ('-H "Authorization: token {x24}"', 1),
        ("Set-Cookie: session={x24}; Path=/", 1),
        ("docker login -u rowan -p {x16} registry.example", 1),
        ("curl -u rowan:{x16} https://x.example", 1),
        ("curl --user 'rowan:{x16}' https://x.example", 1),
        ("machine api.example login user password {x16}", 1),
        ("user password {h40}", 1),
        ("bearer of {x24}", 0),
        ("ftp -u rowan -p {x16}", 0),
    ],
)
def test_a_phrase_hides_only_its_secret(text: str, hidden: int) -> None:
    told, parts = made(text, random.Random(SEED))
    shown = without_secrets(told)
    assert shown.count(HIDDEN) == hidden
    assert any(part in shown for part in parts) != bool(hidden)
    assert shown[:8] == told[:8]


def test_a_value_in_quotes_is_hidden_up_to_its_last_word() -> None:
    assert without_secrets('password: "two words, and more" x') == f'password: "{HIDDEN}" x'
    assert (
        without_secrets('{\\"password\\": \\"two words\\", \\"a\\": 1}')
        == f'{{\\"password\\": \\"{HIDDEN}\\", \\"a\\": 1}}'
    )
    assert without_secrets("password='never closed and long") == f"password='{HIDDEN}"


def test_a_name_without_a_value_does_not_hide_the_next_one() -> None:
    told, parts = made("token password={x16} key: 3 secret={x12}", random.Random(SEED))
    shown = without_secrets(told)
    assert shown == f"token password={HIDDEN} key: 3 secret={HIDDEN}"
    assert not any(part in shown for part in parts)


def test_a_mail_address_is_a_person_and_hidden_only_where_persons_are() -> None:
    assert without_secrets("to m.winter@lab.example.org now", persons=True) == f"to {HIDDEN} now"
    assert without_secrets("to m.winter@lab.example.org now") == "to m.winter@lab.example.org now"


@pytest.mark.parametrize("alphabet", "hxnNwsB")
def test_few_random_values_pass_for_words(alphabet: str) -> None:
    rng = random.Random(SEED)
    values = ["".join(rng.choices(ALPHABETS[alphabet], k=24)) for _ in range(1_000)]
    assert sum(not looks_random(value) for value in values) <= 80


@pytest.mark.parametrize(
    ("value", "random_"),
    [
        ("a1" * 8, False),  # two characters are 1 bit each
        ("a1b2c3d4e5f6g7h8", True),
        ("a1b2c3d4e5f6g7h", False),  # 15 characters
        ("abcdefghij1klmnopqrstuvw", False),  # two turns of 24 characters
        ("a1b2c3d4-a1b2c3d4-a1b2c3d4", False),  # no piece of 10
        ("a1b2c3d4e5-a1b2c3d4", True),
        ("abcdEfghIjklMnopQrst", False),  # no digit
        ("/a1b2c3d4e5f6g7h8", False),  # a path
        ("a1b2c3d4e5 f6g7h8i9", False),
        ("aabbccddee11ffaabbcc", False),
    ],
)
def test_what_looks_random_is_decided_by_its_bits_and_turns(value: str, random_: bool) -> None:
    assert looks_random(value) is random_
    assert (LEAST_CHARS, LEAST_BITS) == (16, 2.8)


@pytest.mark.parametrize(
    ("name", "secret", "setting"),
    [
        ("api_key", True, False), ("OPENAI_API_KEY_2", True, False), ("clientSecret", True, False),
        ("secret_sauce_lr", False, False), ("pad_token", False, True), ("tokenizer_pad_token", False, True),
        ("admin_token", False, False), ("join_token", False, False), ("password_hash", True, False),
        ("num_tokens", False, True), ("metric_key", False, True), ("access_token", True, False),
    ],
)  # fmt: skip
def test_a_name_is_read_to_its_end(name: str, secret: bool, setting: bool) -> None:
    assert (names_a_secret(name), is_setting(name)) == (secret, setting)


def test_no_needle_is_so_common_that_every_line_of_a_log_has_it() -> None:
    line = "step 12 loss 2.31 lr 3e-4 grad_norm 1.0 tokens_per_sec 51200 num_tokens 12 task disk mask path connection"
    assert [needle for needle in needles() if needle in line] == []


@given(st.text(max_size=300))
def test_hiding_twice_changes_nothing_more(text: str) -> None:
    once = without_secrets(text, persons=True)
    assert without_secrets(once, persons=True) == once


@given(st.integers(0, len(SECRETS) - 1), st.text(max_size=20), st.text(max_size=20))
def test_hiding_twice_changes_nothing_more_of_a_secret_in_a_text(which: int, before: str, after: str) -> None:
    secret = SECRETS[which]
    once = without_secrets(f"{before}\n{secret.name}={secret.value}\n{after}", "<secret>")
    assert without_secrets(once, "<secret>") == once
    assert not secret.seen_in(once) or secret.seen_in(before + after)


def test_no_line_of_the_table_has_the_form_of_a_secret_itself() -> None:
    made_up = re.compile(r"\{[a-zA-Z]\d+\}")
    for form in forms():
        if form.kind == "shape":
            for example in form.examples:
                assert made_up.search(example), form.name


def test_a_long_name_is_judged_by_its_end_at_once() -> None:
    assert names_a_secret("n" * 100_000 + "_api_key")
    begin = time.process_time()
    assert not any(names_a_secret("n" * 1_000 + f"_{n}") for n in range(2_000))
    assert time.process_time() - begin < 1  # 2.4 s where the whole name is looked at
