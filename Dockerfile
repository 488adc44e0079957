# The image of ptyd: `docker build -t ptyd .`, or with `--target slim` without git.
#
# Sessions run in the container as an ordinary user, beside the server. They end with the container, and their output stays
# in the volume. A binary `ptyd` beside this file is taken as it is; without one the image compiles the sources.

ARG BUILD=docker.io/library/rust:1-bookworm
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BUILD} AS build
WORKDIR /src
COPY . .
RUN [ -e ptyd ] || { cargo build --release --locked --package ptyd && mv target/release/ptyd . ; }

FROM ${BASE} AS slim
# tini is process 1: it hands signals on to the server and reaps what the programs of sessions leave behind.
RUN command -v tini >/dev/null || { \
      apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* ; } \
 && useradd --uid 7893 --create-home --shell /bin/bash ptyd \
 && install -d -o ptyd -g ptyd -m 700 /var/lib/ptyd
COPY --from=build /src/ptyd /usr/local/bin/ptyd
USER ptyd
WORKDIR /home/ptyd
ENV PTYD_STATE_DIR=/var/lib/ptyd
VOLUME /var/lib/ptyd
EXPOSE 7893
HEALTHCHECK --interval=15s --timeout=10s CMD ["ptyd", "ls"]
ENTRYPOINT ["tini", "--", "ptyd"]
CMD ["serve"]

FROM slim AS full
USER root
RUN command -v git >/dev/null || { \
      apt-get update && apt-get install -y --no-install-recommends ca-certificates git openssl && rm -rf /var/lib/apt/lists/* ; }
USER ptyd
