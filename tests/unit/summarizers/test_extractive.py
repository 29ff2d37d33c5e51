"""The embedded summarizer: what it keeps, in which languages, and what it survives."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from summary_requests import request_of

from compaction_ledger.domain.errors import InvalidSetting
from compaction_ledger.domain.finish import MAX_SUMMARY_CHARACTERS, Usage, failures
from compaction_ledger.infrastructure.summarizers.extractive import ExtractiveSummarizer
from compaction_ledger.infrastructure.summarizers.sentences import sentences

ENGLISH = (
    "I looked at the documents of the fund. The ongoing charge is {n}.20% a year. "
    "As of 29 March 2024 the NAV was 1{n}.34 EUR. Past performance says little of the future. "
    "Markets go up and down, and nobody knows when. It is often wise to take some time over this. "
    "The report of fund {n} was published by the company in the usual way. "
    "There are many ways of looking at such figures. Would you like to know more?"
)
CHINESE = (
    "我查看了基金的相关文件。第{n}号基金的年度管理费为{n}.20%。截至2024年3月29日，单位净值为1{n}.34元。"
    "过往业绩不代表未来表现。市场有涨有跌，谁也无法预知。做决定之前不妨多花一些时间考虑。"
    "看待这些数字的方法有很多种。公司按照惯例公布了这份报告。您还想了解其他内容吗？"
)
JAPANESE = (
    "ファンドの資料を確認しました。第{n}号ファンドの信託報酬は年率{n}.5%です。"
    "基準価額は2024年3月29日時点で1{n},345円でした。過去の実績は将来を保証しません。"
    "市場は上がることも下がることもあります。時間をかけて考えることをお勧めします。"
    "このような数字の見方はいろいろあります。他に質問はありますか？"
)
ARABIC = (
    "راجعت مستندات الصندوق. تبلغ رسوم الصندوق رقم {n} نحو {n}.20٪ سنويا. "
    "بلغ صافي قيمة الأصول 1{n}.34 في 29 مارس 2024. الأداء السابق لا يضمن المستقبل. "
    "الأسواق ترتفع وتنخفض ولا أحد يعرف متى. من الحكمة أخذ بعض الوقت للتفكير. "
    "نشرت الشركة التقرير بالطريقة المعتادة. هل تريد معرفة المزيد؟"
)


@pytest.mark.parametrize(
    "template", [ENGLISH, CHINESE, JAPANESE, ARABIC], ids=["en", "zh", "ja", "ar"]
)
def test_given_ten_replies_when_summarized_then_figures_stay_and_courtesies_go(
    template: str,
) -> None:
    replies = [template.format(n=n) for n in range(10)]

    answer = ExtractiveSummarizer().summarize(request_of(replies))

    size = sum(map(len, replies))
    assert failures(answer) == ()
    assert answer.usage == Usage()
    assert 0.1 * size < len(answer.text) < 0.3 * size
    paragraphs = answer.text.split("\n")
    assert len(paragraphs) == 10, "one paragraph for each reply"
    for reply, paragraph in zip(replies, paragraphs, strict=True):
        assert all(sentence in reply for sentence in sentences(paragraph)), "word for word"
        assert any(map(str.isdigit, paragraph))
        assert not paragraph.endswith(("?", "？", "؟"))


def test_given_the_same_sentence_in_every_reply_when_summarized_then_it_is_kept_once() -> None:
    replies = [f"The charge is 1.2%. Fund {n} has {n}00 holdings of its own." for n in range(10)]

    text = ExtractiveSummarizer().summarize(request_of(replies)).text

    assert text.count("The charge is 1.2%.") == 1


any_reply = st.text(st.characters(codec=None, exclude_categories=()), min_size=1)


@given(st.lists(any_reply, min_size=10, max_size=10))
def test_given_any_replies_when_summarized_then_the_text_is_well_formed_and_bounded(
    replies: list[str],
) -> None:
    text = ExtractiveSummarizer().summarize(request_of(replies)).text

    assert len(text) <= 5_000
    assert "\x00" not in text
    text.encode()
    assert all(any(line in reply for reply in replies) for line in text.split("\n"))


@pytest.mark.parametrize(
    "replies",
    [["🎉🎉👍"] * 10, ["."] * 10, ["Yes.", "No."] * 5, ["Ok"] * 10, ["字"] * 10],
    ids=["emoji", "dots", "short", "same", "one character"],
)
def test_given_next_to_nothing_when_summarized_then_it_still_is_a_success(
    replies: list[str],
) -> None:
    assert failures(ExtractiveSummarizer().summarize(request_of(replies))) == ()


def test_given_damaged_text_when_summarized_then_only_sound_sentences_are_used() -> None:
    replies = ["Bad \ud800 one 1. Good one 2.", "Nul \x00 here 3. Fine one 4."] * 5

    text = ExtractiveSummarizer().summarize(request_of(replies)).text

    assert set(sentences(text.replace("\n", " "))) == {"Good one 2.", "Fine one 4."}


def test_given_only_sentences_too_long_to_keep_when_summarized_then_none_is_cut() -> None:
    answer = ExtractiveSummarizer().summarize(request_of(["x" * 2_000] * 10))

    assert failures(answer) == ("empty",)


@pytest.mark.slow
def test_given_ten_megabytes_in_one_sentence_when_summarized_then_the_rest_is_used() -> None:
    started = time.perf_counter()
    replies = ["word " * 2_000_000, *(f"Fund {n} charges {n}.5%." for n in range(9))]

    answer = ExtractiveSummarizer().summarize(request_of(replies))

    assert failures(answer) == ()
    assert "Fund 8 charges 8.5%." in answer.text
    assert time.perf_counter() - started < 30


@pytest.mark.slow
def test_given_eight_times_the_text_when_summarized_then_the_time_grows_about_as_much() -> None:
    def seconds(factor: int) -> float:
        replies = [" ".join(ENGLISH.format(n=n + k) for k in range(12 * factor)) for n in range(10)]
        started = time.thread_time()  # of this thread alone: the machine may be busy
        ExtractiveSummarizer().summarize(request_of(replies))
        return time.thread_time() - started

    seconds(1)

    assert min(seconds(8) for _ in range(2)) < 8 * 3 * max(min(seconds(1) for _ in range(3)), 0.01)


@pytest.mark.slow
def test_given_another_process_when_summarized_then_the_text_is_the_same(repo_root: Path) -> None:
    code = (
        "from summary_requests import request_of; from test_extractive import ENGLISH\n"
        "from compaction_ledger.infrastructure.summarizers.extractive import ExtractiveSummarizer\n"
        "replies = [ENGLISH.format(n=n) for n in range(10)]\n"
        "print(ascii(ExtractiveSummarizer().summarize(request_of(replies)).text))\n"
    )
    path = os.pathsep.join([str(repo_root / "tests" / "support"), str(Path(__file__).parent)])
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(seen) == 1
    assert "%" in seen.pop()


def test_given_other_settings_when_identified_then_the_identity_is_another() -> None:
    default = ExtractiveSummarizer().model

    assert str(default) == "compaction-ledger/extractive"
    assert dict(default.settings) == {"max_characters": "5000", "share": "0.22", "version": "1"}
    assert ExtractiveSummarizer(share=0.3).model != default


def test_given_a_bound_when_summarized_then_it_is_kept() -> None:
    replies = [ENGLISH.format(n=n) for n in range(10)]

    text = ExtractiveSummarizer(share=0.9, max_characters=300).summarize(request_of(replies)).text

    assert 0 < len(text) <= 300


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_given_a_share_out_of_range_when_made_then_it_is_refused(share: float) -> None:
    with pytest.raises(InvalidSetting, match="share"):
        ExtractiveSummarizer(share=share)


@pytest.mark.parametrize("bound", [0, MAX_SUMMARY_CHARACTERS + 1])
def test_given_a_bound_out_of_range_when_made_then_it_is_refused(bound: int) -> None:
    with pytest.raises(InvalidSetting, match="max_characters"):
        ExtractiveSummarizer(max_characters=bound)
