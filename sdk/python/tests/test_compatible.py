"""Programs written for the published client `agentfense` keep their names, arguments and defaults.

What is different on purpose is in the tables below; everything else that differs is a mistake.
"""

import dataclasses
import enum
import inspect

import agentfense
import pytest
import ringfence

LEFT_OUT = {
    "PRESETS": "a table that callers could change; `get_preset` returns a copy",
    "parse_ignore_file": "git's patterns cannot be had as a list; `walk_directory` applies them",
    "human_readable_size": "not about sandboxes",
    "generate_codebase_name": "not about sandboxes",
    "generate_owner_id": "not about sandboxes",
    "count_files": "not about sandboxes; `Codebase.file_count` says it",
}

OTHER_DEFAULTS = {
    # Without an endpoint, the one of the environment, else the usual one, else a private server.
    "endpoint": ("localhost:9000", None),
    # The same directory, in the words of the workspace.
    "list_files.path": ("", "/"),
    # Fewer messages.
    "upload_file.chunk_size": (64 * 1024, 256 * 1024),
}

OTHER_FIELD_DEFAULTS = {
    # What `session()` takes when nothing is said; theirs names another shell than it starts.
    "Session.shell": ("/bin/bash", "/bin/sh"),
}

CLASSES = ["Sandbox", "SandboxClient", "SessionWrapper"]
CLASSES += [f"Async{name}" for name in CLASSES]

MADE_BY_CALLERS = ["SandboxClient", "AsyncSandboxClient"]
"""The other classes are made by methods, and how is nobody's business."""


def published(kind):
    """The public names of the client that are of a kind, left-out ones aside."""
    return [name for name in agentfense.__all__
            if name not in LEFT_OUT and kind(getattr(agentfense, name))]


def is_exception(held):
    return inspect.isclass(held) and issubclass(held, Exception)


def is_enum(held):
    return inspect.isclass(held) and issubclass(held, enum.Enum)


def is_dataclass(held):
    return inspect.isclass(held) and dataclasses.is_dataclass(held)


def test_every_public_name_is_there_or_left_out_on_purpose():
    missing = {name for name in agentfense.__all__ if name not in ringfence.__all__}
    assert missing == set(LEFT_OUT)


def test_what_is_left_out_is_not_there_by_accident():
    assert not [name for name in LEFT_OUT if hasattr(ringfence, name)]


# ---- methods and functions ---------------------------------------------------------------------


def methods():
    for class_name in CLASSES:
        for name in vars(getattr(agentfense, class_name)):
            if not name.startswith("_"):
                yield class_name, name
    for class_name in MADE_BY_CALLERS:
        yield class_name, "__init__"


@pytest.mark.parametrize("class_name, name", list(methods()))
def test_a_method_can_be_called_the_same_way(class_name, name):
    theirs = inspect.getattr_static(getattr(agentfense, class_name), name)
    ours = inspect.getattr_static(getattr(ringfence, class_name), name, None)
    assert ours is not None, "it does not exist"
    assert isinstance(theirs, property) == isinstance(ours, property)
    assert isinstance(theirs, classmethod) == isinstance(ours, classmethod)
    if not isinstance(theirs, property):
        assert_calls_alike(getattr(agentfense, class_name), getattr(ringfence, class_name), name)


@pytest.mark.parametrize("class_name", [name for name in CLASSES if name.startswith("Async")])
def test_what_is_awaited_stays_awaited(class_name):
    for name, held in vars(getattr(agentfense, class_name)).items():
        if not name.startswith("_") and inspect.isroutine(held):
            theirs = inspect.unwrap(getattr(getattr(agentfense, class_name), name))
            ours = getattr(getattr(ringfence, class_name), name)
            assert inspect.iscoroutinefunction(theirs) == inspect.iscoroutinefunction(ours), name


@pytest.mark.parametrize("name", published(inspect.isfunction))
def test_a_function_can_be_called_the_same_way(name):
    assert_calls_alike(agentfense, ringfence, name)


def assert_calls_alike(their_owner, our_owner, name):
    theirs = parameters(getattr(their_owner, name))
    ours = parameters(getattr(our_owner, name))
    for number, parameter in enumerate(theirs):
        assert (ours[number].name, ours[number].kind) == (parameter.name, parameter.kind)
        if ours[number].default != parameter.default:
            assert documented(name, parameter) == (parameter.default, ours[number].default)
    only_by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    for more in ours[len(theirs):]:
        assert more.kind in only_by_name, f"{more.name} would take the place of a later argument"


def documented(name, parameter):
    found = OTHER_DEFAULTS.get(f"{name}.{parameter.name}") or OTHER_DEFAULTS.get(parameter.name)
    assert found, f"{name}({parameter}) has another default"
    return found


def parameters(function):
    return list(inspect.signature(inspect.unwrap(function)).parameters.values())


# ---- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", published(is_dataclass))
def test_a_record_has_the_same_fields_in_the_same_places(name):
    theirs, ours = getattr(agentfense, name), getattr(ringfence, name)
    pairs = zip(dataclasses.fields(theirs), dataclasses.fields(ours))
    for their_field, our_field in pairs:
        assert our_field.name == their_field.name
        assert our_field.default_factory == their_field.default_factory
        if our_field.default != their_field.default:
            expected = OTHER_FIELD_DEFAULTS[f"{name}.{our_field.name}"]
            assert (their_field.default, our_field.default) == expected
    assert len(dataclasses.fields(ours)) >= len(dataclasses.fields(theirs))
    held = set(dir(ours)) | {field.name for field in dataclasses.fields(ours)}
    assert {name for name in vars(theirs) if not name.startswith("_")} <= held


@pytest.mark.parametrize("name", published(is_enum))
def test_an_enumeration_has_the_same_members_which_are_their_texts(name):
    theirs, ours = getattr(agentfense, name), getattr(ringfence, name)
    assert {member.name: member.value for member in theirs} == {
        member.name: member.value for member in ours}
    assert all(member == member.value for member in ours)


PRESETS = [name for name in agentfense.__all__ if name.startswith("PRESET_")]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_same_name_and_the_same_rules(name):
    preset = getattr(ringfence, name)
    assert preset == getattr(agentfense, name)
    theirs = [{**rule.to_dict(), "priority": int(rule.priority)}
              for rule in agentfense.get_preset(preset)]
    assert ringfence.get_preset_dicts(preset) == theirs


# ---- exceptions --------------------------------------------------------------------------------

EXAMPLES = {
    "ConnectionError": ("localhost:9000",),
    "SandboxNotFoundError": ("sb_1",),
    "SandboxNotRunningError": ("sb_1", "stopped"),
    "CodebaseNotFoundError": ("cb_1",),
    "FileNotFoundError": ("cb_1", "a.txt"),
    "CommandTimeoutError": ("sleep 5", 2.0),
    "CommandExecutionError": ("false", 1, "out", "err"),
    "PermissionDeniedError": ("open", "/secret"),
    "SessionNotFoundError": ("sess_1",),
    "SessionClosedError": ("sess_1",),
    "ResourceLimitExceededError": ("memory", "1 GB"),
    "UploadError": ("a.txt", "cb_1"),
}


@pytest.mark.parametrize("name", published(is_exception))
def test_an_exception_is_made_of_the_same_and_says_the_same(name):
    arguments = EXAMPLES.get(name, ("what happened", "why"))
    theirs = getattr(agentfense, name)(*arguments)
    ours = getattr(ringfence, name)(*arguments)
    for attribute, value in vars(theirs).items():
        assert hasattr(ours, attribute), attribute
        if attribute not in ("message", "details"):
            assert getattr(ours, attribute) == value, attribute


@pytest.mark.parametrize("name", published(is_exception))
def test_an_exception_is_caught_where_it_was(name):
    for parent in getattr(agentfense, name).__mro__:
        if parent.__module__.startswith("agentfense"):
            assert issubclass(getattr(ringfence, name), getattr(ringfence, parent.__name__))


def test_exceptions_have_a_module_of_their_own_in_both():
    for name in published(is_exception):
        assert getattr(ringfence.exceptions, name) is getattr(ringfence, name)
