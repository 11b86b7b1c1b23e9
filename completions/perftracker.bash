# SPDX-License-Identifier: Apache-2.0
# bash completion of perftracker(1).
# shellcheck shell=bash

_perftracker_options() {
	case $1 in
	run) echo '--out --keep-traces --format --report-to --quiet --slowdown --recent --learn
		--blocked --min-gap --window --steps --source --exact --no-audit --budget-always
		--budget-window --metrics --metrics-compat --gpu-calls --gpu-samples --min-gain --jobs --help' ;;
	analyze | localize) echo '--format --output --ranks --steps --min-gain --expect --exact --seed
		--world-size --exit-code --jobs --help' ;;
	diff) echo '--vs --format --output --min-change --level --steps --skip-first --exit-code
		--verbose --jobs --help' ;;
	summarize) echo '--output --rank --host-ranks --steps --skip-first --sidecar --job --flight-fd
		--sidecar-fd --keep --help' ;;
	profile) echo '--socket --window --timeout --help' ;;
	status) echo '--socket --format --help' ;;
	doctor) echo '--python --format --verbose --exit-code --root --help' ;;
	timeline) echo '--output --last --ranks --no-align --format --help' ;;
	simulate) echo '--scenario --output --workers --seed --strength --level --iterations --onset
		--tensor --pipeline --expert --host-workers --skew --counters --list --format --help' ;;
	dump) echo '--format --top --collectives --help' ;;
	esac
}

_perftracker() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W \
			'run profile status timeline analyze diff summarize localize simulate dump doctor --help --version' -- "$word")
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ] && declare -F _command_offset > /dev/null; then
			_command_offset $((i + 1))
			return
		fi
	done
	case $before in
	--format)
		local formats='text json html'
		[ "$command" = timeline ] && formats=chrome
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
		;;
	--gpu-samples) mapfile -t COMPREPLY < <(compgen -W 'own none' -A directory -- "$word") ;;
	--metrics-compat) mapfile -t COMPREPLY < <(compgen -W xpu_timer -- "$word") ;;
	--source) mapfile -t COMPREPLY < <(compgen -W 'auto agent torch' -- "$word") ;;
	--report-to) mapfile -t COMPREPLY < <(compgen -W 'stderr stdout' -- "$word") ;;
	--root | --out) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_perftracker_options "$command")" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		;;
	esac
}

complete -o filenames -F _perftracker perftracker
