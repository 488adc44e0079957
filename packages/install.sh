#!/bin/sh
# Installs ptyd @VERSION@ for this user: fetches the archive for this machine, compares its SHA-256 with the release's, and puts the
# binary into PREFIX/bin. It needs no root, and changes nothing else.
set -eu

# A script that arrives in part does nothing.
main() {
  prefix=
  from=@URL@
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix | --from)
        [ $# -ge 2 ] || fail "$1 takes a value"
        if [ "$1" = --prefix ]; then prefix=$2; else from=$2; fi
        shift 2
        ;;
      -h | --help)
        echo "usage: install.sh [--prefix DIRECTORY] [--from URL]"
        echo "  --prefix DIRECTORY  the binary goes into DIRECTORY/bin [default: ~/.local]"
        echo "  --from URL          the place of the archive and of SHA256SUMS [default: $from]"
        exit 0
        ;;
      *) fail "there is no $1; --help lists the options" ;;
    esac
  done

  if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set; --prefix names a place"
    prefix=$HOME/.local
  fi
  command -v sha256sum >/dev/null || fail "sha256sum is not here: nothing was installed"
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) processor=x86_64 ;;
    Linux-aarch64) processor=aarch64 ;;
    *) fail "ptyd runs on Linux on x86_64 and aarch64; this is $(uname -s) on $(uname -m)" ;;
  esac
  name=ptyd-@VERSION@-$processor-linux
  folder=$(mktemp -d)
  trap 'rm -rf "$folder" "$prefix/bin/.ptyd.new"' EXIT
  # Not every shell runs the trap of the exit after a signal.
  trap 'exit 1' HUP INT TERM
  fetch "$from/$name.tar.gz" "$folder/$name.tar.gz"
  fetch "$from/SHA256SUMS" "$folder/SHA256SUMS"
  (
    cd "$folder"
    grep " [ *]$name.tar.gz\$" SHA256SUMS >sum || fail "SHA256SUMS does not name $name.tar.gz: nothing was installed"
    sha256sum -c sum >/dev/null 2>&1 || fail "the SHA-256 of $name.tar.gz is not that of SHA256SUMS: nothing was installed"
    tar -xzf "$name.tar.gz"
  )
  mkdir -p "$prefix/bin"
  # A running ptyd keeps its file.
  cp "$folder/$name/ptyd" "$prefix/bin/.ptyd.new"
  chmod 755 "$prefix/bin/.ptyd.new"
  version=$("$prefix/bin/.ptyd.new" --version) || fail "the binary does not start here: nothing was installed"
  mv -f "$prefix/bin/.ptyd.new" "$prefix/bin/ptyd"
  echo "installed: $version in $prefix/bin/ptyd"
  case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "$prefix/bin is not in PATH; add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
}

fetch() {
  case $1 in
    file://*)
      cp "${1#file://}" "$2" || fail "$1 cannot be fetched: nothing was installed"
      return
      ;;
  esac
  if command -v curl >/dev/null; then
    curl -fsSL -o "$2" "$1" || fail "$1 cannot be fetched: nothing was installed"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "$1 cannot be fetched: nothing was installed"
  else
    fail "neither curl nor wget is here"
  fi
}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

main "$@"
