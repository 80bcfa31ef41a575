"""The client that comes with the wheel, against a gateway that it starts."""

import tempfile
from pathlib import Path

from throughline import Gateway, Throughline, ThroughlineError

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "notes.txt").write_text("alpha\nbeta\n")
    with Gateway(data=Path(folder, "data")) as gateway:
        frames = list(gateway.run("read notes.txt", cwd=folder))
        assert any("alpha" in str(frame) for frame in frames), frames[-3:]
        conversation = next(gateway.conversations())["id"]
        hits = list(gateway.search("alpha"))
        assert hits and hits[0]["conversation"] == conversation, hits
        pairs = gateway.pairs(conversation)
        assert len(pairs) == 1 and pairs[0]["state"] == "ok", pairs
        assert gateway.switch("sim", conversation=conversation)
        assert gateway.usage()["conversations"] == 1
        try:
            gateway.switch("nobody")
        except ThroughlineError as error:
            assert error.code == "throughline_unknown_backend", error.code
        else:
            raise AssertionError("a backend that is not there was switched to")
    try:
        list(Throughline(gateway.url).search("x"))
    except ThroughlineError as error:
        assert "throughline serve" in str(error), error
print("the client of the wheel: run, search, pairs, switch, usage")
