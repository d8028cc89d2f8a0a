#!/usr/bin/env fish
# Does completion in fish offer every option of each command, the values of those that have some, and behind servet-pin the
# command that it runs? usage: completes.fish SERVET.FISH FOLDER-OF-COMMAND…
set -gx PATH $argv[2..-1] $PATH
source $argv[1]; or exit 1
set -g failed 0

# offers EXPECTED LINE: completing the line gives all words of EXPECTED
function offers
	set -l offered (complete -C "$argv[2]" | string replace -r '\t.*' '')
	for word in (string split ' ' -- $argv[1])
		if not contains -- $word $offered
			echo "FAIL: '$argv[2]' does not offer $word, but: $offered"
			set -g failed 1
		end
	end
end

for command in servet-probe servet-show servet-map servet-pin servet-spmd servet-bench
	command -q $command; or continue
	# every long option that --usage knows, by another way than the script's own
	set -l options ($command --usage | string match -ra -- '--[a-z][a-z-]*' | sort -u)
	test (count $options) -ge 5; or begin; echo "FAIL: $command --usage shows no options"; set failed 1; end
	offers "$options" "$command --"
end
set -g seen 0
sh (status dirname)/option_values servet-probe servet-map servet-pin servet-spmd | while read -l command option list
	offers "$list" "$command $option "
	offers "$option="(string replace -a ' ' " $option=" -- $list) "$command $option="
	set seen (math $seen + 1)
end
test $seen -ge 7; or begin; echo "FAIL: option_values finds $seen options with values"; set failed 1; end
command -q servet-bench; and offers "servet-mem servet-comm" "servet-bench --comparators servet"
offers all "servet-probe --probes "
offers rankfile "servet-map --format ra"
offers p "servet-map --kind "
offers "2d5 2d9" "servet-spmd --stencil 2"
offers bash "servet-pin --mem-prior bas"
offers bash "servet-pin -p profile.json bas"
offers bash "servet-pin --trace traffic bas"
cd (dirname $argv[1]); or exit 1
offers servet.fish "servet-show ser"
offers servet.fish "servet-pin --trace ser"
offers servet.fish "servet-pin -- cat ser"
exit $failed
