from pytest_captcha_qa.model.record import SCHEMA_VERSION
from pytest_captcha_qa.records.upcast import UPCASTERS, readable, upcast

STEPS = {1: lambda line: line | {"two": True}, 2: lambda line: line | {"three": line["two"]}}


def test_an_old_line_takes_every_step_in_order():
    assert upcast({}, 1, upcasters=STEPS, current=3) == {"two": True, "three": True}
    assert upcast({"two": 0}, 2, upcasters=STEPS, current=3) == {"two": 0, "three": 0}


def test_a_present_or_newer_line_stays_as_it_is():
    assert upcast({"a": 1}, SCHEMA_VERSION) == {"a": 1}
    assert upcast({"a": 1}, SCHEMA_VERSION + 5) == {"a": 1}


def test_every_version_back_to_the_first_can_be_read():
    assert all(readable(version) for version in range(1, SCHEMA_VERSION + 3))
    assert set(UPCASTERS) == set(range(1, SCHEMA_VERSION))
    assert not readable(0)
