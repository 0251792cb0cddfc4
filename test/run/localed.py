#!/usr/bin/env python3
"""Runs a suite whose programs have called setlocale: localed.py --locale de_DE.UTF-8 --build BUILD COMMAND...

localedef makes the locales in BUILD/test/locales from the sources of the package `locales`. If it cannot, the script says so and ends with status 77.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
LOCALES = ["de_DE.UTF-8", "tr_TR.UTF-8"]


def environment(build, locale):
    """What makes programs call setlocale for a locale, once it is made; None: it cannot be."""
    build = pathlib.Path(build).resolve()
    folder = build / "test" / "locales"
    made, (name, charset) = folder / locale, locale.split(".")
    if not made.is_dir():
        if not shutil.which("localedef") or not pathlib.Path("/usr/share/i18n/locales", name).exists():
            return None
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{locale}.{os.getpid()}"
        subprocess.run(["localedef", "-i", name, "-f", charset, f"./{part.name}"], cwd=folder, capture_output=True)
        try:
            part.rename(made)
        except OSError:  # another suite was first
            shutil.rmtree(part, ignore_errors=True)
    return {"LOCPATH": str(folder), "TEST_LOCALE": locale, "LD_PRELOAD": str(build / "lib" / "localed.so")} if (made / "LC_NUMERIC").exists() else None


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--locale", required=True, choices=LOCALES)
    a.add_argument("--build", required=True)
    a.add_argument("command", nargs=argparse.REMAINDER)
    a = a.parse_args()
    more = environment(a.build, a.locale)
    if not more:
        print(f"skipped: {a.locale} cannot be made; localedef and the sources of the package locales are needed")
        sys.exit(SKIPPED)
    os.execvpe(a.command[0], a.command, {**os.environ, **more})


if __name__ == "__main__":
    main()
