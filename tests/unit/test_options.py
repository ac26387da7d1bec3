"""The table of options: each row is complete, and what derives from it agrees with it."""

import subprocess
import sys
from typing import get_args

import pytest

from oh_kernel.options import BY_NAME, OPTIONS, Option
from oh_kernel.settings import Settings
from tests import options_page


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_row_is_complete(option: Option) -> None:
    assert option.help and not option.help.endswith(".")
    assert option.placeholder
    assert option.name.isidentifier() and option.name.islower()
    assert option.default in option.choices or not option.choices
    assert option.unit or option.type not in (int, float), "a number has a unit"
    if option.name.endswith("_s"):
        assert option.unit == "seconds"


def test_flag_and_variable_derive_from_the_name() -> None:
    option = BY_NAME["max_steps"]
    assert (option.flag, option.variable) == ("--max-steps", "OPENHANDS_MAX_STEPS")
    assert BY_NAME["policy"].placeholder == "risky|never|always|cautious"


def test_the_settings_model_has_a_field_for_each_row_in_order() -> None:
    assert list(Settings.model_fields) == [option.name for option in OPTIONS]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_field_and_row_agree(option: Option) -> None:
    field = Settings.model_fields[option.name]
    assert field.default == option.default
    assert field.description == option.help
    if option.choices:
        assert set(get_args(field.annotation)) == set(option.choices)


def test_only_the_key_is_secret() -> None:
    assert [option.name for option in OPTIONS if option.secret] == ["api_key"]


def test_the_table_imports_nothing_of_ours_and_nothing_heavy() -> None:
    """The kernel reads it at start."""
    code = "import sys, oh_kernel.options; print([m for m in sys.modules if m in %r])"
    heavy = ["pydantic", "oh_kernel.errors", "oh_kernel.settings", "platformdirs", "traitlets"]
    run = subprocess.run([sys.executable, "-c", code % heavy], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("[]", "")


def test_the_page_of_options_is_up_to_date() -> None:
    """Else run: python -m tests.options_page"""
    assert options_page.PAGE.read_text("utf-8") == options_page.page()
