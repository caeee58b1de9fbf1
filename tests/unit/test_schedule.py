"""The learning rate of each step: shapes, budgets in steps and minutes, and what a checkpoint takes along."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.config import Pretrain, from_saved, resolve
from toolkit.errors import UsageError
from toolkit.pretrain.schedule import FIRST_PLAN, Schedule

SCHEDULES = ("cosine", "linear", "constant", "warmup-stable-decay")


def made(total: int = 1000, **keys) -> Schedule:
    return Schedule(Pretrain(**({"learning_rate": 0.01, "warmup_steps": 100} | keys)), total)


@given(st.sampled_from(SCHEDULES), st.integers(2, 5000), st.floats(0.01, 1.0), st.data())
def test_the_rate_rises_once_and_then_never_again(schedule, total, share, data) -> None:
    warmup = data.draw(st.integers(0, total - 1))
    one = made(total, schedule=schedule, warmup_steps=warmup, decay_share=share)
    rates = np.array([one.rate(step) for step in range(total)])
    assert (rates >= 0).all() and rates.max() <= 0.01
    assert (np.diff(rates[:warmup]) > 0).all()
    assert (np.diff(rates[warmup:]) <= 1e-12).all()


@pytest.mark.parametrize(
    ("schedule", "middle", "last"),
    [("cosine", 0.005, 2.5e-8), ("linear", 0.005, 1e-5), ("constant", 0.01, 0.01), ("warmup-stable-decay", 0.01, 5e-5)],
)
def test_each_schedule_has_its_values(schedule, middle, last) -> None:
    one = made(schedule=schedule)
    assert one.rate(0) == pytest.approx(0.01 / 101)
    assert one.rate(500) == pytest.approx(middle)
    assert one.rate(999) == pytest.approx(last, rel=0.02)


def test_a_budget_in_minutes_follows_the_pace_of_the_steps() -> None:
    one = made(10**6, minutes=10.0, schedule="linear", warmup_steps=0)
    assert one.rate(FIRST_PLAN) > 0.0099  # the pace is not known yet
    for step in range(1, FIRST_PLAN + 1):
        one.timed(step, 2.0 if step < 3 else 0.5, 4.0 + 0.5 * (step - 2))
    spent = 4.0 + 0.5 * (FIRST_PLAN - 2)
    assert one.share(FIRST_PLAN) == pytest.approx(spent / 600)
    assert one.share(FIRST_PLAN + 600) == pytest.approx((spent + 300) / 600)  # half a second each
    assert one.rate(10**5) == 0.0


def test_between_two_checkpoints_the_rates_do_not_depend_on_the_clock() -> None:
    """So the steps after a kill repeat those before it."""
    one = made(10**6, minutes=10.0)
    for step in range(1, FIRST_PLAN + 1):
        one.timed(step, 0.5, 0.5 * step)
    one.renew(300, 150.0)
    saved, rates = one.document(), [one.rate(step) for step in range(300, 320)]
    again = made(10**6, minutes=10.0)
    again.take_up(saved)
    for step in range(301, 320):
        again.timed(step, 7.0, 150.0 + 7.0 * (step - 300))  # a machine that has become slow
    assert [again.rate(step) for step in range(300, 320)] == rates
    again.renew(320, 290.0)
    assert again.share(320) > one.share(320)


def test_whichever_limit_comes_first_ends_the_schedule() -> None:
    one = made(100, minutes=60.0, warmup_steps=0, schedule="linear")
    one.renew(50, 60.0)
    assert one.share(50) == 0.5 and one.rate(100) == 0.0


def test_the_decay_of_another_run_starts_where_that_one_is() -> None:
    one = made(1500, schedule="linear", warmup_steps=0)
    one.begin_at(1000, 77.0)
    assert one.rate(1000) == 0.01 and one.rate(1250) == pytest.approx(0.005) and one.rate(1500) == 0.0
    again = made(1500, schedule="linear", warmup_steps=0)
    again.take_up(one.document())
    assert again.rate(1250) == one.rate(1250)


def test_a_warm_up_as_long_as_the_run_is_refused_with_both_numbers() -> None:
    with pytest.raises(UsageError, match=r"warmup_steps = 300, but the run has only 300 steps"):
        made(300, warmup_steps=300)
    assert made(300, warmup_steps="auto").warmup_steps == 15
    assert made(10**6, warmup_steps="auto").warmup_steps == 200
    few = made(10**6, warmup_steps=300, minutes=2.0)
    with pytest.raises(UsageError, match=r"warmup_steps = 300, but the run has only 120 steps in 2 minutes"):
        for step in range(1, FIRST_PLAN + 1):
            few.timed(step, 1.0, float(step))


def test_an_automatic_warm_up_ends_early_in_a_budget_of_few_minutes() -> None:
    one = made(10**6, warmup_steps="auto", minutes=1.0)
    for step in range(1, FIRST_PLAN + 1):
        one.timed(step, 1.0, float(step))
    assert one.rate(0) == pytest.approx(0.01 / 201)
    assert one.rate(FIRST_PLAN) > 0.009


@pytest.mark.parametrize(
    ("assignment", "key"),
    [
        ("pretrain.learning_rate=0", "pretrain.learning_rate = 0"),
        ("pretrain.learning_rate=inf", "pretrain.learning_rate = inf"),
        ("pretrain.warmup_steps=-1", "pretrain.warmup_steps = -1"),
        ("pretrain.decay_share=0", "pretrain.decay_share = 0"),
        ("pretrain.average=1", "pretrain.average = 1"),
        ("pretrain.schedule=steps", "pretrain.schedule = 'steps'"),
    ],
)
def test_settings_that_make_no_training_are_refused_by_name(assignment, key) -> None:
    with pytest.raises(UsageError, match=key):
        resolve(assignments=[assignment], environment={})


def test_adagrad_brings_the_rate_and_schedule_that_it_was_published_with() -> None:
    found = resolve(assignments=["pretrain.optimizer=adagrad"], environment={})
    chosen = found.settings.pretrain
    assert (chosen.learning_rate, chosen.schedule, chosen.warmup_steps) == (0.2, "constant", 0)
    assert found.sources["pretrain.learning_rate"] == "optimizer adagrad"
    own = resolve(assignments=["pretrain.optimizer=adagrad", "pretrain.learning_rate=0.1"], environment={})
    assert own.settings.pretrain.learning_rate == 0.1


def test_a_run_of_version_0_1_is_read_as_it_trained() -> None:
    chosen = from_saved({"pretrain": {"learning_rate": 0.2, "initial_accumulator": 1.0}}).pretrain
    assert (chosen.optimizer, chosen.schedule, chosen.warmup_steps) == ("adagrad", "constant", 0)
    assert (chosen.learning_rate, chosen.initial_bias, chosen.average) == (0.2, "zero", 0.0)
