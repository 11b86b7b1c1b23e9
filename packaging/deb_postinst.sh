#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The hub's user and the folders. No unit is enabled or started: a site's file has to be there first.
set -e
if [ "$1" = configure ]; then
	if command -v systemd-sysusers > /dev/null; then
		systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} perftracker.conf || true
	fi
	if command -v systemd-tmpfiles > /dev/null; then
		systemd-tmpfiles ${DPKG_ROOT:+--root="$DPKG_ROOT"} --create perftracker.conf || true
	fi
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload > /dev/null || true
		# A new version takes over what ran; the daemons of jobs live on meanwhile.
		if [ -n "$2" ]; then
			systemctl try-restart perftracker-hostd.service perftracker-hub.service || true
		fi
	fi
fi
