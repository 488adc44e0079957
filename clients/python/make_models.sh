#!/usr/bin/env bash
# Writes src/ptyd/models.py: the named types of the OpenAPI document. datamodel-codegen is on the PATH.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
{
  printf '"""Made from schema/openapi.json by datamodel-code-generator: make_models.sh."""\n\n'
  datamodel-codegen --input "$here/../../schema/openapi.json" --input-file-type openapi --openapi-scopes schemas \
    --output-model-type typing.TypedDict --enum-field-as-literal all --target-python-version 3.10 --disable-timestamp \
    --use-standard-collections --use-union-operator --formatters builtin --disable-warnings --custom-file-header '# ruff: noqa'
} >"${1:-$here/src/ptyd/models.py}"
