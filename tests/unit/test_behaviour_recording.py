from tests.behaviour.normalise import normalise

FIRST, SECOND = "01a222c3-aa44-7087-baf7-f65bd6ac73e1", "01a222c3-aa45-7087-baf7-f65bd6ac73e2"


def test_ids_are_numbered_by_their_first_appearance_and_times_are_hidden():
    text = f'{SECOND} {FIRST} {SECOND} at 2026-11-28T15:10:00.239Z, "seconds": 1.25, value 0.25'
    assert normalise(text, {}) == '<ID-1> <ID-2> <ID-1> at <TIME>, "seconds": <NUMBER>, value 0.25'


def test_digests_of_content_are_kept_and_chained_ones_hidden():
    digest = "ab" * 32
    assert normalise(digest, {}) == digest
    entry = f'"previous_digest": "{digest}",\n  "digest": "{digest}"'
    assert normalise(entry, {}) == '"previous_digest": "<CHAIN>",\n  "digest": "<CHAIN>"'


def test_the_longest_literal_is_replaced_first():
    assert normalise("/tmp/a/data /tmp/a", {"/tmp/a": "<DIR>", "/tmp/a/data": "<DATA>"}) == "<DATA> <DIR>"
