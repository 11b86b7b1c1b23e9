# SPDX-License-Identifier: Apache-2.0
# bash completion of perftracker(1). Written by tools/generate: edit src/cmd instead.
# shellcheck shell=bash

_perftracker_options() {
	case $1 in
	run) echo '--output --keep-traces --format --report-to --log-format --color --job-name --quiet --slowdown --recent --learn --blocked --min-gap --window --steps --source --exact --no-audit --audit-every --no-checkup --no-stall-window --budget-always --budget-window --gpu-samples --gpu-calls --min-gain --jobs --metrics --metrics-compat --ui --token-file --ui-host --hub --secret-file --insecure --store --webhook --config --show-settings --help' ;;
	profile) echo '--job --socket --format --output --window --timeout --help' ;;
	status) echo '--job --socket --hub --config --watch --format --help' ;;
	accept) echo '--job --socket --help' ;;
	timeline) echo '--output --last --ranks --no-align --format --report --from --to --columns --as-saved --store --help' ;;
	jobs) echo '--store --limit --format --help' ;;
	history) echo '--store --format --help' ;;
	report) echo '--store --format --output --fingerprints --help' ;;
	hosts) echo '--store --exclude --min-jobs --format --help' ;;
	prune) echo '--store --dry-run --age --bytes --jobs --format --help' ;;
	serve) echo '--listen --store --token-file --host --format --help' ;;
	prompt) echo '--budget --output --store --help' ;;
	mcp) echo '--store --url --allow-profile --help' ;;
	attach) echo '--all --seconds --rate --format --output --exit-code --color --verbose --help' ;;
	stacks) echo '--job --all --children --format --output --each --twice --native --python --verbose --help' ;;
	stalls) echo '--pid --job --seconds --proc-only --format --output --record --exit-code --verbose --help' ;;
	roofline) echo '--iterations --block --keep --memory --stop --format --output --report-to --help' ;;
	analyze) echo '--format --output --ranks --steps --min-gain --expect --exact --seed --world-size --past --exit-code --color --verbose --jobs --help' ;;
	verify-fix) echo '--finding --format --output --store --help' ;;
	diff) echo '--vs --format --output --min-change --level --steps --skip-first --exit-code --color --store --verbose --jobs --help' ;;
	flame) echo '--weight --ranks --format --output --help' ;;
	replay) echo '--rank --output --help' ;;
	dump) echo '--format --top --collectives --help' ;;
	simulate) echo '--scenario --output --workers --seed --strength --level --iterations --onset --tensor --pipeline --expert --host-workers --skew --counters --dumps --list --format --help' ;;
	summarize) echo '--output --rank --host-ranks --steps --skip-first --sidecar --flight-fd --sidecar-fd --keep --job --help' ;;
	localize) echo '--format --output --ranks --steps --min-gain --expect --exact --seed --world-size --past --exit-code --color --verbose --jobs --help' ;;
	doctor) echo '--python --format --verbose --exit-code --root --help' ;;
	hostd) echo '--config --set --check-config --log-format --color --help' ;;
	hub) echo '--config --set --check-config --log-format --color --ui --help' ;;
	gpu-sampler) echo '--cupti --window --help' ;;
	esac
}

_perftracker_words() {
	local found
	mapfile -t found < <(compgen -W "$1" -- "$word")
	COMPREPLY+=("${found[@]}")
}

_perftracker_paths() {
	local found
	mapfile -t found < <(compgen "$1" -- "$word")
	COMPREPLY+=("${found[@]}")
}

# The value of an option: returns 1 if the option has none.
_perftracker_value() {
	case $1 in
	'run --output' | 'run -o') _perftracker_paths -d ;;
	'run --format') _perftracker_words 'text json' ;;
	'run --report-to') _perftracker_words 'stderr stdout' ;;
	'run --log-format') _perftracker_words 'auto people logfmt json' ;;
	'run --color') _perftracker_words 'auto always never' ;;
	'run --job-name') ;;
	'run --slowdown') ;;
	'run --recent') ;;
	'run --learn') ;;
	'run --blocked') ;;
	'run --min-gap') ;;
	'run --window') ;;
	'run --steps') ;;
	'run --source') _perftracker_words 'auto agent torch' ;;
	'run --audit-every') ;;
	'run --budget-always') ;;
	'run --budget-window') ;;
	'run --gpu-samples') _perftracker_words 'own none'; _perftracker_paths -d ;;
	'run --min-gain') ;;
	'run --jobs') ;;
	'run --metrics') ;;
	'run --metrics-compat') _perftracker_words 'xpu_timer' ;;
	'run --ui') ;;
	'run --token-file') _perftracker_paths -f ;;
	'run --ui-host') ;;
	'run --hub') ;;
	'run --secret-file') _perftracker_paths -f ;;
	'run --store') ;;
	'run --webhook') _perftracker_paths -f ;;
	'run --config') _perftracker_paths -f ;;
	'profile --job') ;;
	'profile --socket') _perftracker_paths -f ;;
	'profile --format' | 'profile -f') _perftracker_words 'text json html' ;;
	'profile --output' | 'profile -o') _perftracker_paths -f ;;
	'profile --window') ;;
	'profile --timeout') ;;
	'status --job') ;;
	'status --socket') _perftracker_paths -f ;;
	'status --config' | 'status -c') _perftracker_paths -f ;;
	'status --format' | 'status -f') _perftracker_words 'text json' ;;
	'accept --job') ;;
	'accept --socket') _perftracker_paths -f ;;
	'timeline --output' | 'timeline -o') _perftracker_paths -f ;;
	'timeline --last') ;;
	'timeline --ranks') ;;
	'timeline --format') _perftracker_words 'chrome chrome-gz bins' ;;
	'timeline --report') ;;
	'timeline --from') ;;
	'timeline --to') ;;
	'timeline --columns') ;;
	'timeline --store') ;;
	'jobs --store') ;;
	'jobs --limit' | 'jobs -n') ;;
	'jobs --format' | 'jobs -f') _perftracker_words 'text json' ;;
	'history --store') ;;
	'history --format' | 'history -f') _perftracker_words 'text json' ;;
	'report --store') ;;
	'report --format' | 'report -f') _perftracker_words 'text json html' ;;
	'report --output' | 'report -o') _perftracker_paths -f ;;
	'report --fingerprints') _perftracker_paths -d ;;
	'hosts --store') ;;
	'hosts --exclude' | 'hosts -x') _perftracker_words 'none slurm kubernetes' ;;
	'hosts --min-jobs') ;;
	'hosts --format' | 'hosts -f') _perftracker_words 'text json' ;;
	'prune --store') ;;
	'prune --age') ;;
	'prune --bytes') ;;
	'prune --jobs') ;;
	'prune --format' | 'prune -f') _perftracker_words 'text json' ;;
	'serve --listen' | 'serve -l') ;;
	'serve --store') ;;
	'serve --token-file') _perftracker_paths -f ;;
	'serve --host') ;;
	'serve --format' | 'serve -f') _perftracker_words 'text json' ;;
	'prompt --budget' | 'prompt -b') ;;
	'prompt --output' | 'prompt -o') _perftracker_paths -f ;;
	'prompt --store') ;;
	'mcp --store') ;;
	'mcp --url') ;;
	'attach --seconds' | 'attach -s') ;;
	'attach --rate') ;;
	'attach --format' | 'attach -f') _perftracker_words 'text json html' ;;
	'attach --output' | 'attach -o') _perftracker_paths -f ;;
	'attach --color') _perftracker_words 'auto always never' ;;
	'stacks --job') ;;
	'stacks --format' | 'stacks -f') _perftracker_words 'text json folded speedscope html' ;;
	'stacks --output' | 'stacks -o') _perftracker_paths -f ;;
	'stacks --twice') ;;
	'stalls --pid' | 'stalls -p') ;;
	'stalls --job') ;;
	'stalls --seconds' | 'stalls -s') ;;
	'stalls --format' | 'stalls -f') _perftracker_words 'text json timeline' ;;
	'stalls --output' | 'stalls -o') _perftracker_paths -f ;;
	'stalls --record' | 'stalls -r') _perftracker_paths -f ;;
	'roofline --iterations' | 'roofline -n') ;;
	'roofline --block') ;;
	'roofline --keep') ;;
	'roofline --memory') ;;
	'roofline --format' | 'roofline -f') _perftracker_words 'text json' ;;
	'roofline --output' | 'roofline -o') _perftracker_paths -f ;;
	'roofline --report-to') _perftracker_words 'stderr stdout' ;;
	'analyze --format' | 'analyze -f') _perftracker_words 'text json html' ;;
	'analyze --output' | 'analyze -o') _perftracker_paths -f ;;
	'analyze --ranks') ;;
	'analyze --steps') ;;
	'analyze --min-gain') ;;
	'analyze --expect') _perftracker_paths -f ;;
	'analyze --seed') ;;
	'analyze --world-size') ;;
	'analyze --past') _perftracker_paths -f ;;
	'analyze --color') _perftracker_words 'auto always never' ;;
	'analyze --jobs' | 'analyze -j') ;;
	'verify-fix --finding') ;;
	'verify-fix --format' | 'verify-fix -f') _perftracker_words 'text json' ;;
	'verify-fix --output' | 'verify-fix -o') _perftracker_paths -f ;;
	'verify-fix --store') ;;
	'diff --format' | 'diff -f') _perftracker_words 'text json html' ;;
	'diff --output' | 'diff -o') _perftracker_paths -f ;;
	'diff --min-change') ;;
	'diff --level') ;;
	'diff --steps') ;;
	'diff --color') _perftracker_words 'auto always never' ;;
	'diff --store') ;;
	'diff --jobs' | 'diff -j') ;;
	'flame --weight' | 'flame -w') _perftracker_words 'auto device host wait' ;;
	'flame --ranks') ;;
	'flame --format' | 'flame -f') _perftracker_words 'html folded speedscope svg' ;;
	'flame --output' | 'flame -o') _perftracker_paths -f ;;
	'replay --rank' | 'replay -r') ;;
	'replay --output' | 'replay -o') _perftracker_paths -f ;;
	'dump --format' | 'dump -f') _perftracker_words 'text json' ;;
	'dump --top' | 'dump -n') ;;
	'simulate --scenario' | 'simulate -s') ;;
	'simulate --output' | 'simulate -o') _perftracker_paths -d ;;
	'simulate --workers') ;;
	'simulate --seed') ;;
	'simulate --strength') ;;
	'simulate --level') _perftracker_words 'events fingerprints' ;;
	'simulate --iterations') ;;
	'simulate --onset') ;;
	'simulate --tensor') ;;
	'simulate --pipeline') ;;
	'simulate --expert') ;;
	'simulate --host-workers') ;;
	'simulate --skew') ;;
	'simulate --counters') ;;
	'simulate --dumps') ;;
	'simulate --format' | 'simulate -f') _perftracker_words 'text json' ;;
	'summarize --output' | 'summarize -o') _perftracker_paths -f ;;
	'summarize --rank') ;;
	'summarize --host-ranks') ;;
	'summarize --steps') ;;
	'summarize --sidecar') _perftracker_paths -f ;;
	'summarize --flight-fd') ;;
	'summarize --sidecar-fd') ;;
	'summarize --keep') _perftracker_paths -f ;;
	'summarize --job') ;;
	'localize --format' | 'localize -f') _perftracker_words 'text json html' ;;
	'localize --output' | 'localize -o') _perftracker_paths -f ;;
	'localize --ranks') ;;
	'localize --steps') ;;
	'localize --min-gain') ;;
	'localize --expect') _perftracker_paths -f ;;
	'localize --seed') ;;
	'localize --world-size') ;;
	'localize --past') _perftracker_paths -f ;;
	'localize --color') _perftracker_words 'auto always never' ;;
	'localize --jobs' | 'localize -j') ;;
	'doctor --python') _perftracker_paths -f ;;
	'doctor --format') _perftracker_words 'text json' ;;
	'doctor --root') _perftracker_paths -d ;;
	'hostd --config' | 'hostd -c') _perftracker_paths -f ;;
	'hostd --set') ;;
	'hostd --log-format') _perftracker_words 'auto people logfmt json' ;;
	'hostd --color') _perftracker_words 'auto always never' ;;
	'hub --config' | 'hub -c') _perftracker_paths -f ;;
	'hub --set') ;;
	'hub --log-format') _perftracker_words 'auto people logfmt json' ;;
	'hub --color') _perftracker_words 'auto always never' ;;
	'hub --ui') ;;
	'gpu-sampler --cupti') _perftracker_paths -f ;;
	*) return 1 ;;
	esac
}

_perftracker() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
	local command=${COMP_WORDS[1]}
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		_perftracker_words 'run profile status accept timeline jobs history report hosts prune serve prompt mcp attach stacks stalls roofline analyze verify-fix diff flame replay dump simulate summarize localize doctor hostd hub gpu-sampler --help --version'
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ] && declare -F _command_offset > /dev/null; then
			_command_offset $((i + 1))
			return
		fi
	done
	if _perftracker_value "$command $before"; then
		return
	fi
	if [[ $word == -* ]]; then
		_perftracker_words "$(_perftracker_options "$command")"
	else
		_perftracker_paths -f
	fi
}

complete -o filenames -F _perftracker perftracker
