"""Settings that make no sense: one line that names the setting, its value and where it came from."""

import pytest

NUMBERS = {
    "pretrain.learning_rate": ("0", "-1", "inf", "nan", "1e999", '"fast"', "[]"),
    "pretrain.warmup_steps": ("-1", "1.5", '"soon"'),
    "pretrain.decay_share": ("0", "1.01", "nan"),
    "pretrain.average": ("-0.1", "1", "nan"),
    "pretrain.optimizer": ('"sgd"', "1", '""'),
    "pretrain.schedule": ('"step"', "0"),
    "pretrain.initial_bias": ('"random"', "false"),
    "adapt.learning_rate": ("0", "inf", "nan"),
    "text.lowercase_paragraphs": ("-0.1", "1.1", "nan"),
}
CASES = [(key, value) for key, values in NUMBERS.items() for value in values]


@pytest.mark.parametrize(("key", "value"), CASES)
def test_a_bad_value_is_refused_by_name(toolkit, key, value) -> None:
    toolkit("config", "show", "--set", f"{key}={value}").refused(key, "--set")
