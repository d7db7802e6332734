# syntax=docker/dockerfile:1
# The sidecar as a server for applications beside it: docs/container.md tells how it is run.
#
#   docker build -t mnem-sidecar .
#
# Both base images can be given, also by digest; the one that runs needs Node 24 on its PATH, and neither a shell nor a
# package manager. Secrets reach single steps and never a layer: `npmrc` (npm's configuration) and `ca` (certificates in
# PEM), where a network asks for them.

ARG NODE_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=${NODE_IMAGE}

FROM ${NODE_IMAGE} AS build
WORKDIR /build
# Process 1 has to hand on signals and to collect the children of others, which Node does not.
RUN test -x /usr/bin/tini-static \
    || (apt-get update && apt-get install -y --no-install-recommends tini)
COPY package.json package-lock.json ./
COPY core/package.json core/
COPY protocol/package.json protocol/
COPY server/package.json server/
# No install script runs: the bundler comes as a binary of its own package, and the rest is plain JavaScript.
RUN --mount=type=secret,id=npmrc,target=/run/secrets/npmrc \
    --mount=type=secret,id=ca,target=/run/secrets/ca.pem \
    if test -s /run/secrets/npmrc; then export NPM_CONFIG_USERCONFIG=/run/secrets/npmrc; fi; \
    if test -s /run/secrets/ca.pem; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca.pem; fi; \
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY LICENSE ./
COPY core/src core/src
COPY protocol/src protocol/src
COPY server/bin server/bin
COPY server/src server/src
COPY scripts/build.mjs scripts/
RUN npm run --silent build
# A volume takes over owner and mode of the folder that it is mounted on.
RUN mkdir -p /stage/data /stage/run/mnem && chmod 0700 /stage/data && chmod 0750 /stage/run/mnem

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="mnem-sidecar" \
      org.opencontainers.image.description="Keeps the memories of AI agents as version-controlled stores" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=build /usr/bin/tini-static /usr/bin/tini
COPY --from=build /build/LICENSE /build/dist/THIRD-PARTY-LICENSES.txt /build/dist/mnem-sidecar.mjs /app/
COPY --from=build --chown=10001:10001 /stage/data /data
COPY --from=build --chown=10001:10001 /stage/run/mnem /run/mnem
ENV MNEM_SERVER_STORE=/data \
    MNEM_SERVER_LISTEN=unix:/run/mnem/mnem.sock
USER 10001:10001
WORKDIR /data
VOLUME ["/data", "/run/mnem"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
    CMD ["node", "/app/mnem-sidecar.mjs", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "node", "/app/mnem-sidecar.mjs"]
CMD ["serve"]
