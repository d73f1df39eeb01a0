"""What might be said of the golden run, each statement behind its facts, which are named by a piece of their sentence.

They were written while the check was made: they say what it does, and no rate of how often it errs.
"""

from __future__ import annotations

from collections.abc import Mapping

ASKED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("why", {"neuron": "m1.14"}),
    ("why", {"neuron": "m1.99"}),
    ("why-not", {"neuron": "m0.0"}),
    *(("show", {"section": section}) for section in ("accuracy", "search", "cost", "missed", "controls")),
    ("compare", {"first": "m1.14", "second": "m1.99"}),
    ("tabulate", {"units": "m1.14,m1.99", "where": "op == '-'", "paired": True}),
    ("records", {"unit": "m1.14", "flips": "yes", "limit": 5}),
    ("disguise", {"neuron": "m1.14"}),
)
"""Calls that read stored counts."""
QUESTION = "is m1.14 above 20 %? does it flip 50 of 64?"
TRUE = (
    (
        "Yes: m1.14 is the strongest of the 256 channels searched; switched off alone it breaks 14 of 64 "
        "right answers (22 %) [{Switch channel m1.14}, {As one of 256 units searched it flips at least "
        "4.3}]."
    ),
    (
        "On answers kept aside it flips 12 of 64, while 95 % of random channels flip at most 2 of 64 "
        "[{m1.14 flips 12 of 64 answers kept aside, at least}]."
    ),
    (
        "With 95 % confidence it flips at least 10 % of such answers [{m1.14 flips 12 of 64 answers kept "
        "aside, at least}]."
    ),
    (
        "For example, 105 + 70 becomes 176 instead of 175, and 269 - 89 becomes 170 [{105 + 70 = 175 → 176 "
        "· 269}]."
    ),
    (
        "It flips mostly when the tens digit of the right answer is 0, 1, 7 or 8 and the smaller of b and "
        "the right answer is below 81: 15 of 26 held-out answers there, against 11 of 121 elsewhere (MCC "
        ".49) [{Mostly when}]."
    ),
    (
        "m1.14 beats all 19 of 19 random units (p = .05) [{Beside controls: flips more than 19 of 19 "
        "random units (p}]."
    ),
    (
        "m1.99 is only suggestive: it flips 4 of 64 kept aside, fewer than the 12 of 64 of m1.14 [{m1.99 "
        "is suggestive}, {m1.14 flips 12 of 64 answers kept aside, at least}]."
    ),
    (
        "m1.14 flips 55 of 176 subtractions (31 %) and 22 of 168 additions (13 %) on train records [{m1.14 "
        "flips 55 of}, {m1.14 flips 22 of the 168}]."
    ),
    "So it breaks subtractions more often, by 18 points [{That is +18 points}].",
    (
        "The two are not told apart by these examples (exact paired test, p = 0.302) [{These examples do "
        "not tell which}]."
    ),
    (
        "Of the same 344 train records both flip 14; m1.14 alone flips 63 and m1.99 alone 14 [{Of the same "
        "344}]."
    ),
    (
        "m0.0 was never tested alone: a group of 13 units with it flipped 0 of 17 on both slices, so the "
        "upper bound is 0.195, below τ = 0.2 [{m0.0 (1→0): never tested}]."
    ),
    "Attribution ranked it 203rd of 256 [{Attribution ranked m0.0}].",
    (
        "The model is right on 255 of 300 records (85 %), 76 of 90 held out [{Unablated the model is right "
        "on}, {On the held-out records alone}]."
    ),
    "It is best on additions, 131/137 (96 %), and worst on subtractions, 124/163 (76 %) [{Of these: 94/96}].",
    (
        "The search needed 44 group ablations and 2,391 forwards, about 15 % of the 16,384 of testing each "
        "alone [{The search of 256 channels (1→0) took 44}]."
    ),
    (
        "Only one of 256 channels is shown, m1.14; one more, m1.99, reached 20 % on a half of 32 answers "
        "and is not told apart from chance [{1 of 256 channels (1→0) is shown: m1.14}, {1 more channel "
        "reached 20 % on a half of 32 answers, not told apart from chance: m1.99}]."
    ),
    "Seven more are not ruled out, the strongest m1.118 with strength 0.19 [{7 more are not ruled out}].",
    (
        "Its effect is direct, since nothing lies above it; the token that the model writes moves by +1.66 "
        "logits [{Nothing lies above it}, {Above its replacement it raises '5', '4', '3' and lowers}]."
    ),
    (
        "It breaks the units digit first in 8 of the 14 flips and the tens digit in 5 [{The written "
        "answer's units digit first, in 8 of the 14}]."
    ),
    (
        "First order predicts each flip (MCC 1.00), which is arithmetic and no prediction, since nothing "
        "lies above it [{First order, with nothing fitted}]."
    ),
    (
        "That it reaches τ is not shown: 12 flips on the slice of D+ in a second run would show it [{That "
        "it reaches τ is not shown}]."
    ),
    (
        "With baseline mean it flips 10 of 32 of D+ (31 %), so the effect does not hang on the baseline "
        "[{With baseline mean m1.14}]."
    ),
    (
        "The rule of m1.14 and the splitter rule agree on 29 of 76 held-out records (38 %), no more than "
        "two unrelated rules would [{No: on held-out records the rule of m1.14}]."
    ),
    (
        "Ja: m1.14 kippt 12 von 64 zurückgehaltenen Antworten, mindestens 10 % (95 % Sicherheit) [{m1.14 "
        "flips 12 of 64 answers kept aside, at least}]."
    ),
    "Zufällige Kanäle kippen höchstens 2 von 64 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    (
        "Es kippt vor allem Subtraktionen: 31 % gegenüber 13 % [{m1.14 flips 55 of}, {m1.14 flips 22 of "
        "the 168}]."
    ),
    "Die Regel hat eine MCC von 0,49 (Intervall 0,29 bis 0,66) [{The rule of m1.14: the right answer's}].",
    (
        "Oui : sans m1.14, 14 des 64 réponses justes deviennent fausses (22 %) [{Switch channel m1.14}, "
        "{Switch channel m1.14}]."
    ),
    (
        "Il dépasse 19 des 19 unités aléatoires (p = 0,05) [{Beside controls: flips more than 19 of 19 "
        "random units (p}]."
    ),
    "Le modèle a raison sur 255 des 300 cas, soit 85 % [{Unablated the model is right on}].",
    (
        "Sí: m1.14 cambia 12 de 64 respuestas apartadas; m1.99 solo 4 de 64 [{m1.14 flips 12 of 64 answers "
        "kept aside, at least}, {m1.99 is suggestive}]."
    ),
    "La búsqueda encontró 2 de 2 (al menos el 22 %) [{The search found 2/2}].",
    "I would next test it with another seed; that would cost one run.",
    "Two things remain open: what it reads, and whether it holds on other tasks.",
    (
        "m1.14 flips more on D+ than on D-: 8 of 32 (25 %) against 6 of 32 (19 %) [{Ablating m1.14 alone "
        "flips 8 of these 32 of D+ (25 %) and}]."
    ),
    "No: 22 % of the answers flip, not 50 % [{Switch channel m1.14}].",
    (
        "In 14 of 64 cases the answer changes; a typical one is 105 + 70 = 175 → 176 [{Switch channel "
        "m1.14}, {105 + 70 = 175 → 176 · 269}]."
    ),
    (
        "Held out, its flips are 14 of 54 where the splitter rule fires and 3 of 22 elsewhere (p = .73), "
        "so selectivity is undecided [{m1.14: undecided}]."
    ),
    (
        "The unit flips 12/64 of the answers that chose nothing, against 4/64 for m1.99 [{m1.14 flips 12 "
        "of 64 answers kept aside, at least}, {m1.99 is suggestive}]."
    ),
    (
        "9 of the 14 units whose upper bound reaches τ were localized (64 %) [{Of the units whose upper "
        "bound reaches τ when}]."
    ),
    "Ten of 32 D+ answers flip with the mean baseline [{With baseline mean m1.14}].",
    (
        "Because m1.14 is shown: 12 of 64 held-out answers flip, at least 10 %, whereas 95 % of random "
        "channels flip 2 of 64 or fewer [{m1.14 flips 12 of 64 answers kept aside, at least}]."
    ),
    (
        "| unit | kept aside |\n|---|---|\n| m1.14 | 12 of 64 [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}] |\n| m1.99 | 4 of 64 [{m1.99 is suggestive}] |"
    ),
    "It was not tested on multiplication, so this says nothing of it.",
    "The upper bound of 0.195 lies just below τ = 0.2 [{Pruned: a group of 105}].",
    "In group terms: 105 units together flip 0 of 34 [{Pruned: a group of 105}].",
    (
        "m1.14 (8 of 32 on D+, 6 of 32 on D-) is stronger than m1.99 (2 of 32 and 7 of 32) [{Ablating "
        "m1.14 alone flips 8 of these 32 of D+ (25 %) and}, {Ablating m1.99 alone flips 2 of these 32 of "
        "D+ (6.2 %) and}]."
    ),
    (
        "Neither unit's lower bound reaches τ = 0.2: 0.04 for m1.14 and 0.03 for m1.99 [{m1.14 flips 12 of "
        "64 answers kept aside, at least 10 % (95 %, as one of 2 channels found), and 95 % of random "
        "channels flip 2 of 64 or fewer; it stands}, {m1.99 is suggestive, not shown: it flips 4 of 64 "
        "answers kept aside, and 95 % of random channels flip 2 of 64 or fewer; it stands}]."
    ),
    (
        "Nein, m1.99 ist nicht nachgewiesen: 4 von 64, gegen 12 von 64 bei m1.14 [{m1.99 is suggestive}, "
        "{m1.14 flips 12 of 64 answers kept aside, at least}]."
    ),
    (
        "Environ 31 % des soustractions (55 sur 176) changent contre 13 % des additions (22 sur 168) "
        "[{m1.14 flips 55 of}, {m1.14 flips 22 of the 168}]."
    ),
    "Su regla acierta con un MCC de 0,49 (entre 0,29 y 0,66) [{The rule of m1.14: the right answer's}].",
    (
        "The search cost 44 group ablations (2,391 forwards) where exhaustive testing takes 16,384 [{The "
        "search of 256 channels (1→0) took 44}]."
    ),
    (
        "You asked whether it is above 20 %: at 22 % it is, but that is not shown [{Switch channel m1.14}, "
        "{That it reaches τ is not shown}]."
    ),
    "It flips 22 %, more than the 20 % you ask about [{Switch channel m1.14}].",
    "0 of 198 replaced values (0 %) are out of range [{0/198 (0 %) of the replaced values of m1.14}].",
    "The 19 random units were all weaker [{Beside controls: flips more than 19 of 19 random units (p}].",
    "m1.14's flips: 105 + 70 → 176, 269 - 89 → 170 [{105 + 70 = 175 → 176 · 269}].",
    "Record 1000257000077 (257 - 77 =) flips [{record 1000257000077}].",
    "Switching the channel off costs the model 14 of the 64 answers it had right [{Switch channel m1.14}].",
    (
        "m1.14 breaks 8 of 32 (25 %) in D+ and 6 of 32 (19 %) in D-, a difference that does not make it "
        "selective [{Ablating m1.14 alone flips 8 of these 32}]."
    ),
    (
        "The strongest evidence is on kept-aside answers, where 12 of 64 flip against 2 of 64 or fewer for "
        "95 % of random channels [{m1.14 flips 12 of 64 answers kept aside, at least}]."
    ),
    "arith-tiny answers 85 % of the 300 records correctly [{Unablated the model is right}].",
    "On held-out records accuracy is 84 % (76/90) [{On the held-out records alone}].",
    "Additions are easy (131 of 137, 96 %); subtractions are harder (124 of 163, 76 %) [{Of these: 94/96}].",
    (
        "Its rule has MCC .49 with an interval from .29 to .66, so it is better than chance but far from "
        "complete [{The rule of m1.14: the right}]."
    ),
    "The condition holds for 26 held-out answers, of which 15 flip [{Mostly when}].",
    "Where the condition fails only 11 of 121 flip [{Mostly when}].",
    "m1.99 is weaker: 2 of 32 and 7 of 32 [{Ablating m1.99 alone flips 2 of these 32}].",
    "A paired test cannot separate them: p = 0.30 [{These examples do not tell}].",
    (
        "For subtraction the flip rate is 31 % (24 % to 39 %), for addition 13 % (8.4 % to 19 %) [{m1.14 "
        "flips 55 of}, {m1.14 flips 22 of}]."
    ),
    "As a rule, op == '-' gives an MCC of only .22 (.11 to .31) [{MCC .22}].",
    "The search spent 2,391 example-forwards, about 15 % of exhaustive testing [{The search of 256}].",
    (
        "With the other baseline it is 10 of 32 and 8 of 32, hence above τ = 0.2 as well [{With baseline "
        "mean m1.14}]."
    ),
    "Selectivity is open: 14 of 54 against 3 of 22 [{m1.14: undecided}].",
    "Das Modell löst 255 von 300 Aufgaben (85 %) [{Unablated the model is right}].",
    "Ohne m1.14 gehen 14 der 64 richtigen Antworten verloren, also 22 % [{Switch channel m1.14}].",
    (
        "Bei m1.99 sind es 4 von 64, bei m1.14 12 von 64 [{m1.99 is suggestive}, {m1.14 flips 12 of 64 "
        "answers kept aside, at least}]."
    ),
    "Die Wahrscheinlichkeit p beträgt 0,73 [{m1.14: undecided}].",
    (
        "Sans ce canal, 12 réponses sur 64 mises de côté changent, au moins 10 % [{m1.14 flips 12 of 64 "
        "answers kept aside, at least}]."
    ),
    "La règle atteint un MCC de 0,49 [{The rule of m1.14: the right}].",
    "El modelo acierta 255 de 300 (85 %) [{Unablated the model is right}].",
    "m1.14 cambia el 31 % de las restas (55 de 176) [{m1.14 flips 55 of}].",
    "No: it isn't 50 of 64; it's 14 of 64 [{Switch channel m1.14}].",
    "At 22 % it is above the 20 % that you ask about [{Switch channel m1.14}].",
    "I cannot say what happens in larger models; that was not measured.",
    (
        "m1.14 > m1.99 on kept-aside answers (12/64 vs 4/64) [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}, {m1.99 is suggestive}]."
    ),
    "It took forty-four group ablations [{The search of 256}].",
    "Both units lie in layer 1: m1.14 and m1.99 [{These examples do not tell}].",
)
FALSE = (
    "m1.14 flips 64 answers [{Switch channel m1.14}].",
    "m1.14 flips 19 of 19 answers [{Beside controls: flips more than 19 of 19 random units (p}].",
    "m1.14 flips 95 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 175 answers [{105 + 70 = 175 → 176 · 269}].",
    "m1.14 flips 50 of 64 [{Switch channel m1.14}].",
    "m1.14 flips more than 20 % [{m1.14 flips 22 of the 168}].",
    "m1.14 flips 40k answers [{Switch channel m1.14}].",
    "m1.14 flips twelve out of 60 answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips fifty-eight answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.99 is shown: it flips 4 of 64 [{m1.99 is suggestive}].",
    "m1.14 is not shown [{1 of 256 channels (1→0) is shown: m1.14}].",
    "The rule predicts with 49 % [{The rule of m1.14: the right answer's}].",
    "Its MCC is .66 [{The rule of m1.14: the right answer's}].",
    "Its AUC is .49 [{The rule of m1.14: the right answer's}].",
    "On held-out records m1.14 flips 14 of 64 [{Switch channel m1.14}].",
    "On train m1.14 flips 12 of 64 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips at most 10 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 10 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips at least 12 of 64 kept aside [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    (
        "m1.14 flips 4 of 64, m1.99 12 of 64 [{m1.14 flips 12 of 64 answers kept aside, at least}, {m1.99 "
        "is suggestive}]."
    ),
    (
        "m1.14 flips 12 of 64, fewer than the 4 of 64 of m1.99 [{m1.14 flips 12 of 64 answers kept aside, "
        "at least}, {m1.99 is suggestive}]."
    ),
    "m1.14 flips 255 of 300 [{Unablated the model is right on}].",
    "It flips １５ of 64 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips ½ of the answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "105 + 70 becomes 180 [{105 + 70 = 175 → 176 · 269}].",
    "105 + 70 = 176 → 175 [{105 + 70 = 175 → 176 · 269}].",
    "m1.14 breaks 0→1 answers [{m1.14 (1→0) has strength}].",
    (
        "m1.14 flips 20 % [{1 more channel reached 20 % on a half of 32 answers, not told apart from "
        "chance: m1.99}]."
    ),
    "Three channels are shown [{1 of 256 channels (1→0) is shown: m1.14}].",
    "p > .05 [{Beside controls: flips more than 19 of 19 random units (p}].",
    "m1.14 kippt 12 von 65 Antworten [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 changes 64個中の58個 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14's kept-aside rate is -12 of 64 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "Only 1.2 of 64 flip [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "The strength of m1.14 is 2.5e-1 or 250e3 [{m1.14 (1→0) has strength}].",
    "m1.14 flips nearly all: 64 of 64 [{Switch channel m1.14}].",
    "Some 60 % of the answers flip [{Switch channel m1.14}].",
    (
        "12 of 64 answers flip without m1.99 [{m1.14 flips 12 of 64 answers kept aside, at least}, {m1.99 "
        "is suggestive}]."
    ),
    (
        "m1.99 flips 12 of 64 and m1.14 flips 12 of 64 [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}, {m1.99 is suggestive}]."
    ),
    (
        "Unlike m1.99 with 12 of 64, m1.14 flips 4 of 64 [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}, {m1.99 is suggestive}]."
    ),
    (
        "m1.14 flips 31 % of additions and 12 % of subtractions [{m1.14 flips 55 of}, {m1.14 flips 22 of "
        "the 168}]."
    ),
    "The p is .05 for m1.14 and .302 for the model [{These examples do not tell which}].",
    "The unit flips 12 of 64 train answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "The unit flips 14 of 64 answers, all of them held out [{Switch channel m1.14}].",
    "It flips between 10 % and 95 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "Random units flip at least 2 of 64 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "The MCC lies between .29 and .86 [{The rule of m1.14: the right answer's}].",
    "The MCC lies between .49 and .66 [{The rule of m1.14: the right answer's}].",
    "The MCC is above .49 [{The rule of m1.14: the right answer's}].",
    "The MCC is at least .66 [{The rule of m1.14: the right answer's}].",
    "The MCC is 49 % [{The rule of m1.14: the right answer's}].",
    "Its strength is .49 [{The rule of m1.14: the right answer's}].",
    "Its p is .49 [{The rule of m1.14: the right answer's}].",
    "m1.14 flips 2,391 answers [{The search of 256 channels (1→0) took 44}].",
    (
        "It breaks 8 of the 14 flips in the tens digit and 60 elsewhere [{The written answer's units digit "
        "first, in 8 of the 14}]."
    ),
    (
        "m1.14 is stronger by 8 points [{m1.14 flips 12 of 64 answers kept aside, at least}, {m1.99 is "
        "suggestive}]."
    ),
    "m1.99 has been shown to matter [{m1.99 is suggestive}].",
    "m1.99 wurde nachgewiesen [{m1.99 is suggestive}].",
    "m1.14 is suggestive [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    (
        "Out of every hundred answers 19 flip, as 19 of 100 [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}]."
    ),
    "m1.14 flips 12.5 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 12 of 64 (25 %) [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 12/64, i.e. one in three [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 12e3 answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 12M answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips a dozen of 20 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "The tool says `58 of 64` for m1.14 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    (
        'You said "50 of 64", and m1.14 does flip "50 of 64" [{m1.14 flips 12 of 64 answers kept aside, at '
        "least}]."
    ),
    "m1.14 flips above 20 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "m1.14 flips 12 of 64, above 20 % [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "Seven channels are shown [{1 of 256 channels (1→0) is shown: m1.14}].",
    "Of 64 answers kept aside m1.14 flips 2 [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "It flips 12 of the 64 slices' answers [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    "Switching the channel off costs the model 24 of the 64 answers it had right [{Switch channel m1.14}].",
    "m1.14 breaks 6 of 32 (25 %) in D+ [{Ablating m1.14 alone flips 8 of these 32}].",
    "m1.14 breaks 25 % in D+ and 91 % in D- [{Ablating m1.14 alone flips 8 of these 32}].",
    "On kept-aside answers 21 of 64 flip [{m1.14 flips 12 of 64 answers kept aside, at least}].",
    (
        "Random channels flip up to 12 of 64, m1.14 2 of 64 [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}]."
    ),
    "arith-tiny answers 95 % of the 300 records correctly [{Unablated the model is right}].",
    "On held-out records accuracy is 85 % [{Unablated the model is right}].",
    "Subtractions are easy (131 of 163) [{Of these: 94/96}].",
    "Its rule has MCC .94 [{The rule of m1.14: the right}].",
    (
        "m1.99 is as strong: 8 of 32 [{Ablating m1.99 alone flips 2 of these 32}, {Ablating m1.14 alone "
        "flips 8 of these 32}]."
    ),
    "A paired test separates them: p = 0.003 [{These examples do not tell}].",
    "For subtraction the flip rate is 13 % for m1.99 [{m1.14 flips 55 of}, {m1.14 flips 22 of}].",
    "op == '-' gives an MCC of at least .22 [{MCC .22}].",
    "The search spent 2,391 example-forwards, about 51 % of exhaustive testing [{The search of 256}].",
    "With the other baseline it is 18 of 32 [{With baseline mean m1.14}].",
    "Das Modell löst 255 von 290 Aufgaben [{Unablated the model is right}].",
    "Ohne m1.14 gehen mindestens 14 der 64 richtigen Antworten verloren [{Switch channel m1.14}].",
    (
        "Bei m1.99 sind es 12 von 64, bei m1.14 4 von 64 [{m1.99 is suggestive}, {m1.14 flips 12 of 64 "
        "answers kept aside, at least}]."
    ),
    (
        "Sans ce canal, 12 réponses sur 64 changent, au plus 10 % [{m1.14 flips 12 of 64 answers kept "
        "aside, at least}]."
    ),
    "La règle atteint un MCC de 49 % [{The rule of m1.14: the right}].",
    "El modelo acierta 255 de 310 [{Unablated the model is right}].",
    "Yes, as you say, it is 50 of 64 [{Switch channel m1.14}].",
    "At 22 % it is below the 20 % that you ask about [{Switch channel m1.14}].",
    (
        "m1.99 > m1.14 on kept-aside answers (12/64 vs 4/64) [{m1.14 flips 12 of 64 answers kept aside, at "
        "least}, {m1.99 is suggestive}]."
    ),
    "It took forty-five group ablations [{The search of 256}].",
    "m1.14 breaks 14k answers [{Switch channel m1.14}].",
    "m1.99 is now shown to break answers [{Ablating m1.99 alone flips 2 of these 32}].",
    "m1.15 breaks 14 of 64 [{Switch channel m1.14}].",
    "m1.14 breaks sixty answers [{Switch channel m1.14}].",
)
