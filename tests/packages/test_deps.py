"""`sqlrun deps`: packages from git, pinned by a lock file, in `dbt_packages/`; a failure leaves what was there."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sqlrun.cli.main import main
from sqlrun.packages import deps, git
from tests.support import dbt_project

MONEY = {
    "dbt_project.yml": "name: money\n",
    "macros/euros.sql": "{% macro euros(n) %}cast({{ n }} / 100 as decimal(16, 2)){% endmacro %}\n",
}


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


class Repository:
    """A bare repository, and a clone that commits into it."""

    def __init__(self, folder: Path, name: str = "money") -> None:
        self.bare, self._clone = folder / f"{name}.git", folder / f"{name}-clone"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.bare], check=True)
        subprocess.run(["git", "init", "-q", "-b", "main", self._clone], check=True)

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def git(self, *words: str, given: str = "") -> str:
        author = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", *author, *words], cwd=self._clone, check=True, capture_output=True, text=True, input=given
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], tag: str = "", links: Mapping[str, str] | None = None) -> str:
        for name, text in files.items():
            (self._clone / name).parent.mkdir(parents=True, exist_ok=True)
            (self._clone / name).write_text(text)
        for name, target in (links or {}).items():
            (self._clone / name).symlink_to(target)
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "next")
        self.git("tag", "-a", "-m", tag, tag) if tag else None
        self.git("push", "-q", "--tags", self.url, "HEAD:main")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def money(tmp_path: Path) -> Repository:
    made = Repository(tmp_path)
    made.commit(MONEY, "v1.0")
    return made


def project(folder: Path, packages: str) -> Path:
    """Write a dbt project with this `packages.yml`."""
    root = folder / "shop"
    root.mkdir(exist_ok=True)
    (root / "dbt_project.yml").write_text("name: shop\n")
    (root / "packages.yml").write_text(packages)
    return root


def entry(repository: Repository, revision: str, more: str = "") -> str:
    return f"  - git: {repository.url}\n    revision: {revision}\n{more}"


def test_a_package_is_fetched_at_its_tag_and_pinned(tmp_path: Path, money: Repository) -> None:
    tagged = money.git("rev-parse", "HEAD")
    money.commit({"macros/euros.sql": "later\n"})
    root = project(tmp_path, "packages:\n" + entry(money, "v1.0"))

    done = run("deps", root)

    assert done.exit_code == 0, done.output
    assert done.output == (
        f"money: v1.0 at {tagged[:8]} of {money.url}\n"
        "Fetched 1 package into dbt_packages/, pinned by package-lock.yml.\n"
        f"Next: sqlrun import-dbt {root} --write FOLDER\n"
    )
    found = {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}
    assert found == {
        "dbt_project.yml", "packages.yml", "package-lock.yml",
        *(f"dbt_packages/money/{name}" for name in MONEY),
    }  # fmt: skip
    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == MONEY["macros/euros.sql"]
    assert (
        f'  - name: "money"\n    git: "{money.url}"\n    revision: "{tagged}"\n    requested: "v1.0"\n'
        in (root / "package-lock.yml").read_text()
    )


def test_a_branch_that_moved_stays_at_the_locked_commit_until_it_is_upgraded(tmp_path: Path, money: Repository) -> None:
    first = money.git("rev-parse", "HEAD")
    root = project(tmp_path, "packages:\n" + entry(money, "main"))
    assert run("deps", root).exit_code == 0
    second = money.commit({"macros/euros.sql": "later\n", "macros/more.sql": "more\n"})

    assert f"money: main at {first[:8]}" in run("deps", root).output
    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == MONEY["macros/euros.sql"]
    assert not (root / "dbt_packages/money/macros/more.sql").exists()

    assert f"money: main at {second[:8]} of {money.url}, before {first[:8]}" in run("deps", root, "--upgrade").output
    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == "later\n"
    assert second in (root / "package-lock.yml").read_text()


@pytest.mark.parametrize("any_commit", [True, False])
def test_a_commit_is_fetched_by_its_hash(
    tmp_path: Path, money: Repository, any_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a server that gives tags and branches alone."""
    first = money.git("rev-parse", "HEAD")
    money.commit({"macros/euros.sql": "later\n"})
    if not any_commit:
        for name, value in (("COUNT", "1"), ("KEY_0", "protocol.version"), ("VALUE_0", "0")):
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    root = project(tmp_path, "packages:\n" + entry(money, first))

    assert run("deps", root).exit_code == 0
    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == MONEY["macros/euros.sql"]


def test_another_revision_in_packages_yml_is_not_the_locked_one(tmp_path: Path, money: Repository) -> None:
    root = project(tmp_path, "packages:\n" + entry(money, "v1.0"))
    assert run("deps", root).exit_code == 0
    money.commit({"macros/euros.sql": "later\n"}, "v2.0")
    project(tmp_path, "packages:\n" + entry(money, "v2.0"))

    assert run("deps", root).exit_code == 0
    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == "later\n"


def test_a_subdirectory_is_the_package(tmp_path: Path) -> None:
    many = Repository(tmp_path, "many")
    many.commit({f"packages/money/{name}": text for name, text in MONEY.items()} | {"secret.txt": "x"}, "v1")
    root = project(tmp_path, "packages:\n" + entry(many, "v1", "    subdirectory: packages/money\n"))

    assert run("deps", root).exit_code == 0
    assert sorted(file.name for file in (root / "dbt_packages/money").iterdir()) == ["dbt_project.yml", "macros"]

    wrong = run("deps", project(tmp_path, "packages:\n" + entry(many, "v1")))
    assert wrong.exit_code == 2 and "has no dbt_project.yml at v1. Write `subdirectory: packages/money`" in wrong.output
    wrong = run("deps", project(tmp_path, "packages:\n" + entry(many, "v1", "    subdirectory: nowhere\n")))
    assert wrong.exit_code == 2 and "has no folder nowhere at v1" in wrong.output


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("v1.1", "has no tag or branch v1.1. Did you mean v1.0? Tags and branches: v1.0, main."),
        ("abcdef12", "A commit needs all 40 digits of its hash"),
        ("1" * 39 + "a", "has no commit 1111"),
    ],
)
def test_an_unknown_revision_leaves_what_was_there(tmp_path: Path, money: Repository, revision: str, said: str) -> None:
    root = project(tmp_path, "packages:\n" + entry(money, "v1.0"))
    assert run("deps", root).exit_code == 0
    before = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    project(tmp_path, "packages:\n" + entry(money, revision))

    done = run("deps", root)

    assert done.exit_code == 2 and said in done.output, done.output
    after = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    assert {**before, root / "packages.yml": b""} == {**after, root / "packages.yml": b""}


def test_a_failure_in_the_last_step_brings_back_the_packages(
    tmp_path: Path, money: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two packages is broken, and then the lock file can't be written."""
    root = project(tmp_path, "packages:\n" + entry(money, "main"))
    assert run("deps", root).exit_code == 0
    lock = (root / "package-lock.yml").read_bytes()
    money.commit({"macros/euros.sql": "later\n"})
    broken = tmp_path / "broken.git"
    broken.mkdir()
    project(tmp_path, f"packages:\n{entry(money, 'main')}  - git: file://{broken}\n    revision: main\n")

    done = run("deps", root, "--upgrade")
    assert done.exit_code == 2 and f"packages.yml:4: file://{broken} can't be fetched:" in done.output, done.output

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(deps.atomic_files, "write", fail)
    project(tmp_path, "packages:\n" + entry(money, "main"))
    assert run("deps", root, "--upgrade").exit_code == 1

    assert (root / "dbt_packages/money/macros/euros.sql").read_text() == MONEY["macros/euros.sql"]
    assert (root / "package-lock.yml").read_bytes() == lock
    assert [file.name for file in root.iterdir() if file.name.startswith(".")] == []


ATTACKS = (
    "ext::sh -c 'touch {canary}'",
    "ext::sh -c touch% {canary}",
    "--upload-pack=touch {canary}",
    "-u touch {canary}",
    "fd::17",
    "file::x",
    "ssh://-oProxyCommand=touch {canary}/x",
    "ssh://-oProxyCommand=touch%20{canary}/x",
    "git@-oProxyCommand=touch:x",
    "-oProxyCommand=touch@host:x",
    "git@host:-x",
    "git://host/x",
    "http://host/x",
    "ftp://host/x",
    "file://host/x",
    "file:///a/../b",
    "/etc",
    "../other",
    "https://host/x\nfile:///y",
    "https://us:er@host/x",
    "https://a@b@host/x",
    "https://token@host/x",
    "{{{{ env_var('TOKEN') }}}}",
    "https://host/x;touch {canary}",
    "https://host/$(touch {canary})",
)


@pytest.mark.parametrize("url", ATTACKS)
def test_an_address_that_could_run_a_program_is_refused_before_git_sees_it(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    written = url.format(canary=canary).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    monkeypatch.setattr(git, "_git", lambda *_, **__: pytest.fail("git was started"))

    done = run("deps", project(tmp_path, f'packages:\n  - git: "{written}"\n    revision: main\n'))

    assert done.exit_code == 2 and "SR140 packages.yml:2:" in done.output, done.output
    assert not canary.exists()


@pytest.mark.parametrize(
    "revision",
    [
        "--upload-pack=touch x",
        "-x",
        "a..b",
        "a b",
        "a:b",
        "+a",
        "^a",
        "a~1",
        "@{u}",
        "a@{1}",
        "a\\nb",
        "$(x)",
        "x.lock",
    ],
)
def test_a_revision_that_could_be_an_option_is_refused(tmp_path: Path, money: Repository, revision: str) -> None:
    done = run("deps", project(tmp_path, "packages:\n" + entry(money, f'"{revision}"')))

    assert done.exit_code == 2 and "SR140 packages.yml:3:15  the revision isn't" in done.output, done.output


@pytest.mark.parametrize("folder", ["../x", "/etc", "a/../../b", "-x", "a:b", "a//b", "."])
def test_a_subdirectory_stays_in_the_repository(tmp_path: Path, money: Repository, folder: str) -> None:
    done = run("deps", project(tmp_path, "packages:\n" + entry(money, "main", f'    subdirectory: "{folder}"\n')))

    assert done.exit_code == 2, done.output
    assert "`subdirectory` leads out of" in done.output or "has no folder etc" in done.output, done.output


@pytest.mark.parametrize(
    ("packages", "said"),
    [
        ("packages: [{git: ../money, revision: v1}]\n", "Write `local: ../money` for a folder, or file:///PATH for"),
        ("packages: 3\n", "`packages` of the file must be a list"),
        ("- a\n", "the file must be a mapping"),
        ("packages: [a]\n", "a package must be a mapping"),
        ("packages: [{revision: main}]\n", "the entry names no package"),
        ("packages: [{git: 'https://x.example/a'}]\n", "the package has no `revision`"),
        ("packages: [{git: 'https://x.example/a', revision: 1.0}]\n", 'Quote it, as in `revision: "1.0"`.'),
        ("packages: [{git: 'https://x.example/a', revison: v1}]\n", "Did you mean `revision`?"),
        ("packages: [{local: ../../elsewhere}]\n", "packages.yml:1: the local package ../../elsewhere leads out"),
        ("packages: [{local: nowhere}]\n", "packages.yml:1: the package nowhere has no dbt_project.yml"),
        (
            "packages: [{package: acme/odd, version: [1.2.0]}]\n",
            "Write its repository: `- git: https://github.com/acme/odd.git` with `revision: 1.2.0`. "
            "hub.getdbt.com/acme/odd names the repository. Or run `dbt deps`.",
        ),
        (
            "packages: [{tarball: 'https://x.example/a.tgz', name: a}]\n",
            "from git alone, not `https://x.example/a.tgz`",
        ),
    ],
)
def test_an_entry_that_cannot_be_fetched_says_what_to_write(tmp_path: Path, packages: str, said: str) -> None:
    done = run("deps", project(tmp_path, packages))

    assert done.exit_code == 2 and said in done.output, done.output
    assert not (tmp_path / "shop/dbt_packages").exists()


def test_bundled_packages_come_along_and_installed_ones_stay(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        "packages:\n  - {package: dbt-labs/dbt_utils, version: 1.3.0}\n  - {package: acme/odd, version: 1.0.0}\n"
        "  - {git: 'https://github.com/calogica/dbt-expectations', revision: main}\n",
    )
    (root / "dbt_packages/odd").mkdir(parents=True)
    (root / "dbt_packages/odd/dbt_project.yml").write_text("name: odd\n")

    done = run("deps", root)

    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "dbt_utils: its macros and tests come with sqlrun",
        "dbt_expectations: its macros and tests come with sqlrun",
        "odd: dbt_packages/odd stays as it is",
    ]
    assert (root / "dbt_packages/odd/dbt_project.yml").exists()


def test_two_packages_of_one_name_are_refused(tmp_path: Path, money: Repository) -> None:
    other = Repository(tmp_path, "other")
    other.commit(MONEY)
    done = run("deps", project(tmp_path, "packages:\n" + entry(money, "v1.0") + entry(other, "main")))

    assert done.exit_code == 2, done.output
    assert f"packages.yml:4: {other.url} and {money.url} are both called money. Remove one of them" in done.output


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shop", "and the project itself are both called shop"),
        ("dbt_utils", "the macros of dbt_utils come with sqlrun"),
        ("../../x", "the package has the invalid name '../../x'"),
        ("''", "the package has the invalid name ''"),
    ],
)
def test_a_package_has_a_name_of_its_own(tmp_path: Path, name: str, said: str) -> None:
    odd = Repository(tmp_path, "odd")
    odd.commit({"dbt_project.yml": f"name: {name}\n"})
    done = run("deps", project(tmp_path, "packages:\n" + entry(odd, "main")))

    assert done.exit_code == 2 and said in done.output, done.output


def test_packages_of_a_package_are_followed(tmp_path: Path, money: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a fetched package may not be on this machine: what is tried here is the rule without that one."""
    outer = Repository(tmp_path, "outer")
    outer.commit({"dbt_project.yml": "name: outer\n", "packages.yml": "packages:\n" + entry(money, "v1.0")})
    root = project(tmp_path, "packages:\n" + entry(outer, "main"))

    refused = run("deps", root)
    assert refused.exit_code == 2
    assert "dbt_packages/outer/packages.yml:2: a package that was fetched may name no package on this" in refused.output

    monkeypatch.setattr(deps, "on_this_machine", lambda _: False)
    done = run("deps", root)
    assert done.exit_code == 0, done.output
    assert (root / "dbt_packages/money/macros/euros.sql").exists()
    assert "Fetched 2 packages" in done.output

    money.commit({}, "v2.0")
    project(tmp_path, "packages:\n" + entry(outer, "main") + entry(money, "v2.0"))
    done = run("deps", root)
    assert done.exit_code == 0, done.output
    assert f"dbt_packages/outer/packages.yml:2: {money.url} at v2.0, as packages.yml says, not v1.0" in done.output
    assert "money: v2.0 at " in done.output

    third = Repository(tmp_path, "third")
    third.commit({"dbt_project.yml": "name: third\n", "packages.yml": "packages:\n" + entry(money, "v2.0")})
    done = run("deps", project(tmp_path, "packages:\n" + entry(outer, "main") + entry(third, "main")))
    assert done.exit_code == 2 and "is wanted at v2.0, but at v1.0 by another package" in done.output, done.output


def test_an_import_takes_the_project_s_revision_of_a_package_that_another_one_names(
    tmp_path: Path, money: Repository
) -> None:
    money.commit({"macros/cents.sql": "{% macro cents(n) %}{{ n }} * 100{% endmacro %}\n"}, "v2.0")
    files = {
        "packages.yml": "packages:\n  - local: packages/own\n" + entry(money, "v2.0"),
        "packages/own/dbt_project.yml": "name: own\n",
        "packages/own/packages.yml": "packages:\n" + entry(money, "v1.0"),
        "models/m.sql": "select {{ money.cents('order_id') }} as n from {{ ref('stg_orders') }}\n",
    }
    root = dbt_project.write(tmp_path / "shop", files)

    assert run("deps", root).exit_code == 0
    done = run("import-dbt", root, "--write", tmp_path / "out")

    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/macros/cents.sql").exists()


def test_a_local_package_may_name_one_from_git(tmp_path: Path, money: Repository) -> None:
    root = project(tmp_path, "packages: [{local: packages/own}]\n")
    (root / "packages/own").mkdir(parents=True)
    (root / "packages/own/dbt_project.yml").write_text("name: own\n")
    (root / "packages/own/packages.yml").write_text("packages:\n" + entry(money, "v1.0"))

    done = run("deps", root)

    assert done.exit_code == 0, done.output
    assert "own: the folder packages/own" in done.output
    assert (root / "dbt_packages/money").is_dir()


def test_a_package_that_no_entry_names_is_removed(tmp_path: Path, money: Repository) -> None:
    root = project(tmp_path, "packages:\n" + entry(money, "v1.0"))
    assert run("deps", root).exit_code == 0

    done = run("deps", project(tmp_path, "packages: []\n"))

    assert done.exit_code == 0 and "money: removed, because no entry names it" in done.output, done.output
    assert not (root / "dbt_packages/money").exists() and not (root / "package-lock.yml").exists()


def test_a_link_in_a_package_is_refused(tmp_path: Path) -> None:
    odd = Repository(tmp_path, "odd")
    odd.commit({"dbt_project.yml": "name: odd\n"}, links={"macros": "/etc"})
    done = run("deps", project(tmp_path, "packages:\n" + entry(odd, "main")))

    assert done.exit_code == 2 and "was not fetched: 'macros' is a link" in done.output, done.output


def test_a_tree_of_billions_of_files_is_refused(tmp_path: Path) -> None:
    """Each of its folders has the next one ten times, and all have the same objects."""
    bomb = Repository(tmp_path, "bomb")
    blob = bomb.commit({"dbt_project.yml": "name: bomb\n"}) and bomb.git("rev-parse", "HEAD:dbt_project.yml")
    inner = f"100644 blob {blob}\tdbt_project.yml\n"
    for _ in range(9):
        tree = bomb.git("mktree", given=inner)
        inner = "".join(f"040000 tree {tree}\t{number}\n" for number in range(10))
    tree = bomb.git("mktree", given=inner)
    commit = bomb.git("commit-tree", "-m", "bomb", tree)
    bomb.git("push", "-q", "-f", bomb.url, f"{commit}:refs/heads/main")

    done = run("deps", project(tmp_path, "packages:\n" + entry(bomb, "main")))

    assert done.exit_code == 2 and "it has too many files" in done.output, done.output


@pytest.mark.slow
def test_git_that_does_not_end_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 60\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    monkeypatch.setattr(git, "LONGEST", 2)

    done = run("deps", project(tmp_path, "packages: [{git: 'ssh://host.example/x', revision: v1}]\n"))

    assert done.exit_code == 2 and "git took more than 2 seconds" in done.output, done.output
    with pytest.raises(ProcessLookupError):
        for _ in range(50):
            os.kill(int(pid.read_text()), 0)
            time.sleep(0.1)


def test_no_hook_filter_or_submodule_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's git has a filter and hooks; the repository asks for the filter and for a submodule."""
    home, hooks, canary = tmp_path / "home", tmp_path / "hooks", tmp_path / "canary"
    odd = Repository(tmp_path, "odd")
    odd.commit(
        {**MONEY, ".gitattributes": "* filter=bad\n", ".gitmodules": '[submodule "x"]\npath = x\nurl = ext::sh\n'}
    )
    odd.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},x")
    odd.git("commit", "-q", "-m", "a submodule")
    odd.git("push", "-q", odd.url, "HEAD:main")
    for folder in (home, hooks):
        folder.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath = {hooks}\n[safe]\nbareRepository = explicit\n"
        f'[filter "bad"]\nsmudge = "touch {canary}; cat"\n[protocol "ext"]\nallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))

    done = run("deps", project(tmp_path, "packages:\n" + entry(odd, "main")))

    assert done.exit_code == 0, done.output
    assert not canary.exists()
    assert (tmp_path / "shop/dbt_packages/money/macros/euros.sql").read_text() == MONEY["macros/euros.sql"]


def test_a_lock_file_of_others_is_no_command(tmp_path: Path, money: Repository) -> None:
    """dbt's own has no `requested`; one with options or paths for hashes and names locks nothing."""
    root = project(tmp_path, "packages:\n" + entry(money, "v1.0"))
    for name, commit in (("money", "--upload-pack=x"), ("../../x", "1" * 39 + "a")):
        (root / "package-lock.yml").write_text(
            f"packages:\n  - {{name: {name}, git: '{money.url}', revision: {commit}, requested: v1.0}}\n"
        )
        assert run("deps", root).exit_code == 0
        assert "revision: --upload" not in (root / "package-lock.yml").read_text()
    (root / "package-lock.yml").write_text(
        f"packages:\n  - git: {money.url}\n    revision: {'1' * 39}a\nsha1_hash: x\n"
    )
    assert run("deps", root).exit_code == 0


def test_without_packages_there_is_nothing_to_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("deps", tmp_path).output == f"{tmp_path.name} has no packages.yml: there is nothing to fetch.\n"
    assert run("deps", tmp_path / "nowhere").exit_code == 2

    root = project(tmp_path, "packages: [{git: 'https://x.example/a', revision: v1}]\n")
    monkeypatch.setenv("PATH", os.devnull)
    assert "git isn't installed" in run("deps", root).output
    (root / "pyproject.toml").write_text("[tool.sqlrun]\nname = 'shop'\n")
    assert "shop is a project of sqlrun, and packages are a part of it" in run("deps", root).output
    (root / "pyproject.toml").unlink()
    (root / "dbt_packages").symlink_to(tmp_path)
    assert "dbt_packages is a link" in run("deps", root).output


def test_an_import_reads_what_was_fetched_and_says_what_was_not(tmp_path: Path, money: Repository) -> None:
    files = {
        "packages.yml": "packages:\n" + entry(money, "v1.0"),
        "models/m.sql": "select {{ money.euros('order_id') }} as n from {{ ref('stg_orders') }}\n",
    }
    root = dbt_project.write(tmp_path / "shop", files)

    missing = run("import-dbt", root)
    assert missing.exit_code == 2
    said = f"packages.yml:2: {money.url} isn't in dbt_packages/ at v1.0. Run `sqlrun deps {root}`, then import again"
    assert said in missing.output

    assert run("deps", root).exit_code == 0
    done = run("import-dbt", root, "--write", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "decimal(16, 2)" in (tmp_path / "out/macros/euros.sql").read_text()

    (root / "packages.yml").write_text("packages:\n" + entry(money, "main"))
    assert "isn't in dbt_packages/ at main. Run" in run("import-dbt", root).output
