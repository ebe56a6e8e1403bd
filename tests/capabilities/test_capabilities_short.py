from __future__ import annotations

import pytest

from troth.capabilities import capabilities


def test_short_forms_are_written_out():
    subscribe = {"subscribe": True, "list_changed": [1]}
    made = capabilities(tools=True, resources=subscribe, prompts=False, logging=None, completions=1, roots={})
    assert made == {"tools": {}, "resources": {"subscribe": True, "list_changed": [1]}, "roots": {}}
    subscribe["list_changed"].append(2)
    assert made["resources"]["list_changed"] == [1]


@pytest.mark.parametrize(
    ("name", "message"),
    [("tool", "no capability is called 'tool'; did you mean 'tools'?"), ("zz", "no capability is called 'zz'; there")],
)
def test_an_unknown_name_is_an_error_that_names_the_near_one(name, message):
    with pytest.raises(TypeError) as caught:
        capabilities(**{name: True})
    assert str(caught.value).startswith(message)
