from __future__ import annotations

import pickle

import pytest

from graphsnd import InputError, designs
from graphsnd.designs import FORMS, Bernoulli, Design, Radius

EXAMPLES = [form.example for form in FORMS.values()]


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_design_is_written_as_it_is_read(text: str) -> None:
    design = designs.parse(text)
    assert str(design) == text
    assert designs.parse(str(design)) == design
    assert designs.parse(f" {text.upper()} ") == design
    assert pickle.loads(pickle.dumps(design)) == design


@pytest.mark.parametrize("design", [Bernoulli(1 / 3), Bernoulli(1), Bernoulli(1e-7), Radius(0.1 + 0.2)], ids=str)
def test_all_digits_are_written(design: Design) -> None:
    assert designs.parse(str(design)) == design


def test_every_form_has_the_name_of_its_family() -> None:
    for family, form in FORMS.items():
        assert form.example.partition(":")[0] == family == form.family


WRONG = ["", "half", "full", "all", "circulant:2", "ht:0.1", "complete:3", "bernoulli", "bernoulli:x",
         "bernoulli:2", "knn:0", "knn:1.5", "uniform:0", "regular:-1", "radius:0", "ring:3", "agents:1", "matching:0",
         "agents:8@500"]  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_what_the_caller_says(text: str) -> None:
    with pytest.raises(InputError, match="--design") as caught:
        designs.parse(text, "--design")
    assert caught.value.name == "--design"
    assert repr(text) in str(caught.value)


def test_unknown_words_show_all_forms() -> None:
    with pytest.raises(InputError) as caught:
        designs.parse("half")
    assert all(example in str(caught.value) for example in EXAMPLES)
