#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Purging removes what was recorded; the site's configuration is the site's own.
set -e
if [ "$1" = purge ]; then
	rm -rf "${DPKG_ROOT:-}/var/lib/perftracker"
fi
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload > /dev/null || true
fi
