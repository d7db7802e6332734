# syntax=docker/dockerfile:1
# First draft: the container issue builds, runs and hardens it. Until the daemon listens on a socket it speaks over
# standard input and output: docker run -i --rm -v mnem:/data IMAGE

ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY core/package.json core/
COPY protocol/package.json protocol/
COPY server/package.json server/
# What is left without development dependencies has no install scripts and no native parts.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="mnem-sidecar" \
      org.opencontainers.image.description="Keeps the memories of AI agents as version-controlled stores" \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY LICENSE package.json ./
COPY core/package.json core/
COPY core/src core/src
COPY protocol/package.json protocol/openrpc.json protocol/
COPY protocol/src protocol/src
COPY server/package.json server/
COPY server/bin server/bin
COPY server/src server/src
# The volume takes over owner and mode of the folder that it is mounted on.
RUN mkdir -m 0700 /data && chown 10001:10001 /data
USER 10001:10001
VOLUME /data
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/server/bin/mnem-sidecar.mjs"]
CMD ["stdio", "--store", "/data"]
