#!/bin/sh
# Makes the small project that the examples are about, with the usual secrets in it: `project.sh DIR`.
set -eu

project=$1
mkdir -p "$project/src" "$project/config/secrets" "$project/tests"
cat >"$project/src/app.py" <<'PY'
def add(a, b):
    return a + b
PY
cat >"$project/tests/test_app.py" <<'PY'
import unittest
from src.app import add


class Adding(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(add(40, 2), 42)
PY
printf 'API_KEY=do-not-leak\n' >"$project/.env"
printf 'db-password\n' >"$project/config/secrets/db.txt"
printf -- '-----BEGIN PRIVATE KEY-----\n' >"$project/deploy.key"
