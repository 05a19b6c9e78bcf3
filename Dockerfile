# kf-host in a container, made by the project's own scripts:
#   docker build -t kf-host .
#   docker build -t kf-host-gpu --build-arg BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04 --build-arg TORCH=0 .
# The second one has all of torch, for GPUs too (TORCH=0: none is installed beside the program, that of the build is kept).
ARG BASE=debian:12
FROM ${BASE} AS build
ARG TORCH=1
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates
COPY . /src
WORKDIR /src
RUN if [ "${TORCH}" = 0 ]; then scripts/setup.sh gpu; fi
RUN make install PREFIX=/opt/kf-host TORCH=${TORCH} && scripts/package.sh release 0 && \
    dpkg-deb -f build/release/packages/*.deb Depends >/opt/kf-host/depends
RUN if [ "${TORCH}" = 0 ]; then mv .deps/torch .deps/nvidia /opt/kf-host/lib/kf-host/; fi

FROM ${BASE}
COPY --from=build /opt/kf-host /opt/kf-host
# The system's libraries, as the .deb names them.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates $(tr -d ',' </opt/kf-host/depends) && \
    rm -rf /var/lib/apt/lists/* && ln -s /opt/kf-host/bin/kf-host /usr/local/bin/kf-host
WORKDIR /work
ENTRYPOINT ["kf-host"]
