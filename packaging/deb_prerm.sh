#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -e
if [ "$1" = remove ] && [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now perftracker-hostd.service perftracker-hub.service || true
fi
