#!/usr/bin/env bash
# Makes, once, what the services of compose.yaml share: the tokens and the key of both nodes, the token of Prometheus, and a certificate.
# A certificate of your own is taken if it is in `public/` of the volume.
set -euo pipefail
umask 077
cd "$PTYD_VOLUME"
mkdir -p setup 1 2 public
# Prometheus and nginx run as other users. They reach `public/` only.
chmod 711 . public

if [ ! -e token ]; then
  export PTYD_STATE_DIR=$PWD/setup
  # The first command starts a server, which is needed for these two only.
  ptyd token new prometheus --scope read >public/token.new
  ptyd token new team --unconfined >token.new
  kill "$(<setup/lock)"
  cp setup/tokens.json 1/
  cp setup/tokens.json 2/
  chmod 644 public/token.new
  mv public/token.new public/token
  mv token.new token
fi

# Under this key the nodes share the tokens that are made later.
if [ ! -e fleet-key ]; then
  openssl rand -hex 32 >fleet-key.new
  cp fleet-key.new 1/fleet-key
  cp fleet-key.new 2/fleet-key
  mv fleet-key.new fleet-key
fi

if [ ! -e public/tls.pem ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=$PTYD_HOST" \
    -addext "subjectAltName=DNS:$PTYD_HOST" -keyout public/tls.key -out public/tls.pem
  chmod 644 public/tls.pem
fi

echo "the token of your team: $(<token)"
