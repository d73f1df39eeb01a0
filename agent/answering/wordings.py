"""Wordings of each kind of question, a line each; what the letters stand for is said in `questions`."""

from __future__ import annotations

from collections.abc import Mapping


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


WORDINGS: Mapping[str, tuple[str, ...]] = {
    kind: _lines(text)
    for kind, text in {
        "why": """
            why does U flip
            why does U matter
            why does U change the answer
            explain U
            U
            what is U
            what is the role of U
            what does U do
            what is so special about U
            what is the evidence for U
            why is U an agonist
            why is U needed
            why does the answer break when U is ablated
            give the reasons for U
            how does U cause the flips
            is U an agonist
            is U a neuron that matters
            does U matter
            is U important
            show U
            details on U
            everything about U
            what do you know about U
            why did U break answers
        """,
        "strongest": """
            which unit is the strongest
            what is the best unit
            which unit matters most
            which unit has the largest effect
            who is the top agonist
            strongest unit
            name the most important neuron
            which neuron flips the most
            which one is the strongest
            what is the second strongest unit
        """,
        "summary": """
            what was found
            what did you find
            summary
            summarise the run
            what are the results
            what are the findings
            main result
            what is the conclusion
            give an overview of the run
            what came out
            what did you learn
            what is the takeaway in a sentence
            report
        """,
        "units": """
            which units were found
            list the agonists
            list the units
            which neurons matter
            which units are localized
            which neurons are important
            which neurons flip answers
            show the table of units
            what units did you find
            all agonists
            which are they
            name the units that were found
            which units are responsible for the answers
        """,
        "when": """
            when does U flip
            under what conditions does U flip
            when does U matter
            on which kind of records does U flip
            what kind of problems does U break
            in which cases does U break the answer
            for which inputs does U matter
            when is U needed
            what do the flipped records of U have in common
            what is the ceiling of U
            which sums does U break
            what type of problems go wrong without U
            is there a pattern in the records that U breaks
        """,
        "strength": """
            how strong is U
            how many records does U flip
            how much does U flip
            how many examples flip when U is ablated
            what share of the records does U flip
            what is the flip rate of U
            what percentage of answers does U break
            how big is the effect of U
            effect size of U
            strength of U
            does U reach the threshold
            how many sums break without U
            how many answers change without U
            what happens when U is ablated
            what happens if U is removed
            how often does U flip
            how many flips on D+ and D- has U
            how many D+ records does U flip
        """,
        "examples": """
            show an example of U
            give a few sums that U breaks
            give me some examples that U flips
            show an example
            example
            give a concrete example before and after
            which records does U flip
            list the records that flip without U
            what does the model answer without U
            show before and after for U
            concrete case where U breaks the answer
            can I see some flipped answers
            show flipped records
            what does the model say instead
            for instance
        """,
        "breaks": """
            what breaks without U
            what goes wrong when U is ablated
            which digit changes when U is ablated
            which token changes first without U
            which digit does U break
            what kind of mistakes does the model make without U
            how do the wrong answers of U look
            what part of the answer does U break
            which digit
            which position of the answer is affected by U
            how is the answer wrong without U
        """,
        "prediction": """
            how well does first-order predict U
            how well are the flips of U predicted
            can the flips of U be predicted
            how good is the prediction of U
            does first-order explain U
            what does the lead say about U
            is U predictable from the gradient
            how well does the drop predict U
            what is the MCC of first-order for U
            why is the MCC so high
            why is the MCC 1.00
            is the perfect MCC suspicious
            what is wrong with an MCC of 1
            MCC too good to be true
        """,
        "responds": """
            what does U respond to
            what drives U
            what triggers U
            what makes U fire
            what activates U
            when is the drop of U large
            which inputs drive U
        """,
        "reads": """
            what does U read
            what does U attend to
            what information does U use
            what is the input of U
            where does U look
            what does U take in
        """,
        "writes": """
            what does U write
            what does U push
            what does U put into the residual stream
            which tokens does U raise
            which tokens does U promote or lower
            what is the output of U
            what does U add to the logits
            which digits does U favour
        """,
        "through": """
            through which units does U act
            how does U work
            does U act directly or through other units
            is the effect of U direct
            what lies between U and the answer
            what is downstream of U
            does U go through later layers
            what mediates the effect of U
            how does the effect of U reach the answer
            what is the mechanism of U
            path of U
            which units come after U
        """,
        "sure": """
            how sure is U
            how sure are you about U
            how certain is U
            how confident are you in U
            what is the confidence interval of U
            what is the lower bound of U
            what are the bounds of U
            what is the uncertainty of U
            error bars for U
            how reliable is U
            95 % interval of U
            what is the upper bound of U
        """,
        "unit-chance": """
            could U be chance
            is U statistically significant
            is the effect of U significant
            is U just noise
            what is the p-value of U
            p-value
            is that significant
            is that statistically significant
            is U a fluke
            is U a lucky draw
            could the flips of U be a coincidence
        """,
        "unit-selective": """
            is U selective
            how selective is U
            what is the selectivity of U
            does U flip more on D+ than on D-
            does U prefer D+
            is U specific to D+
            does U flip one slice more than the other
            does U follow the splitter
        """,
        "property": """
            does U flip C more
            does U hurt C more than C
            has U about C
            has U something to do with C
            is U about C
            is U a C unit
            is U a C detector
            does U matter for C
            is U responsible for C
            does U break C
            does U care about C
            does U only affect C
            how many C does U flip
            does U handle C
            is the flip of U related to C
            how does U do on C
            what about C for U
            is U more important for C
            is U involved in C
            does U compute C
            flips of U on C against C
            which does U flip more C or C
        """,
        "covers": """
            what else does the rule of U cover
            when does the rule of U fire
            on how many records does the rule of U apply
            how many records does the rule of U cover
            which other records does the rule of U hold on
            what does the rule cover
            what else does this rule cover
        """,
        "disguise": """
            is the rule of U the splitter in disguise
            does the rule of U differ from the splitter
            is the rule of U the same as the splitter
            is the rule of U identical to the splitter rule
            compare the rule of U with the splitter
            how much do the rule of U and the splitter agree
            does the rule of U only repeat the splitter
            is the rule just the splitter again
        """,
        "flip": """
            would U flip on P
            does U flip P
            what happens to P without U
            what is P without U
            what if the prompt were P for U
            what does the model answer to P when U is ablated
            ablate U on P
            try P without U
            P without U
            does P break without U
            is P still right without U
            what would the model say to P if U were removed
            U on P
            does U matter for P
            P
        """,
        "versus": """
            is U stronger than U
            which is stronger U or U
            compare U and U
            compare U with U
            U versus U
            do U and U flip the same records
            how similar are U and U
            do U and U break the same sums
            overlap of U and U
            how many records do both U and U flip
            does U flip more than U
            is U more important than U
            what is the difference between U and U
            does U share flips with U
            which of U and U matters more
        """,
        "layer": """
            is layer L as a whole worse than its best unit
            what happens if layer L is ablated
            how strong is layer L
            does layer L as a whole flip more than U
            compare layer L with U
            what happens without the whole layer L
            how many records does layer L flip
            is layer L important
            what is the strongest unit of layer L
            what is the strongest head of layer L
            remove the whole of layer L
            how accurate is the model without layer L
            what remains of the accuracy without layer L
            effect of layer L
            how much does layer L matter
        """,
        "shared": """
            which units share the flips of U
            which other units flip the same records as U
            which units overlap with U
            do other units flip the same as U
            who else flips the records of U
            which units are similar to U
            is U redundant with other units
            which neurons share these flips
            what else flips those records
        """,
        "controls": """
            what do the controls of U say
            does U flip more than random units
            is U better than random
            how many random units was U compared with
            was U compared with random units
            did you control for chance with U
            how does U compare with random units
            how many control units are beside U
            did anybody check U against random units
            what is the rank of U among random units
            does U beat other units of its layer
            how many held-out records does U flip
            how many flips on the held-out records
            does U hold on unseen records
            is U confirmed on held-out records
            does the effect of U survive another baseline
            are the values of U out-of-range
        """,
        "mind": """
            what would change your mind about U
            how could I refute U
            what would falsify U
            how can the claim about U be disproved
            what would be a counterexample to U
            what would it take to refute U
        """,
        "how": """
            how was U found
            how did the search find U
            how did you find U
            was U tested alone
            was U tested on its own or in a group
            when did the search test U
            what is the attribution rank of U
            where does U rank by attribution
            how did you come to U
            in which group was U
            has U been tested individually
        """,
        "why-not": """
            why not U
            why is U not an agonist
            why was U pruned
            why was U ruledout
            why was U not found
            why did the search miss U
            why is U not in the list
            why is U missing
            why is U not among the results
            why does U not matter
            why was U excluded
            what is wrong with U
            why does U never flip
            was U ruledout
            why isn't U important
            is U not important
        """,
        "verify": """
            prove it
            prove
            prove U
            verify U
            verify it
            verify that
            check it again
            rerun it
            can you confirm that
            re-run the certificate of U
            prove that again
            replay it
        """,
        "weakest": """
            what is the weakest claim
            which finding is the weakest
            which claim is least supported
            which claim should I trust least
            what is the most doubtful result
            where are you least sure
            which result is shaky
            what is the weakest point
        """,
        "missed": """
            what did the search miss
            what did you miss
            how complete is the search
            how many units did the search overlook
            could there be other units
            is there a third one
            how do you know there is no other unit
            are there more agonists
            did you test every unit
            were all units tested alone
            what is the recall of the search
            did you find all of them
            is anything missing
            how can you be sure that there are no more
            what was not found
            which units did the search miss
            did the search overlook something
        """,
        "rank": """
            is U the strongest unit
            is U the strongest
            is U the best one
            is U the most important unit
            is U the one that matters most
        """,
        "rule": """
            what is the rule of U
            what is its rule
            does U have a rule
            which rule describes U
            rule of U
            give the rule for U
            what rule predicts the flips of U
            is there a rule for U
            can the flips of U be described by a rule
            how good is the rule of U
            what is the MCC of the rule of U
            and its rule
            state the input rule of U
        """,
        "ablate": """
            what happens if U and U are ablated together
            ablate U and U
            what happens when both U and U are removed
            remove U and U together
            joint ablation of U and U
            do U and U interact
            is there an interaction between U and U
            do they back each other up
            are U and U redundant
            do U and U compensate for each other
            is the joint effect larger than the sum
            what if both are removed at the same time
            U and U at the same time
            do they interact
            is one a backup of the other
            how many flip when both are ablated
        """,
        "rules": """
            which rules were found
            list the rules
            which rules are there
            show the rules
            what are the rules
            rules
            which rule is the best
            rules in general
        """,
        "evidence": """
            which certificates are there
            list the certificates
            how many certificates are stored
            show the certificates
            what evidence is stored
        """,
        "slices": """
            how large are the slices
            what are the slices
            which slices were used
            how many records are in the slices
            size of D+ and D-
            how big are D+ and D-
            how many records are in D+
            show the slices
            what is in D-
            examples from D+
        """,
        "hypotheses": """
            which hypotheses are in the ledger
            list the hypotheses
            what was registered before
            which predictions were registered
            was any hypothesis refuted
            what hypotheses were tested
            was anything preregistered
            which hypotheses were supported
        """,
        "compare": """
            compare with run R
            compare R
            how does it differ from run R
            what changed since run R
            compare this run with R
        """,
        "define": """
            what does T mean
            what is T
            what is a T
            what is meant by T
            T
            define T
            explain T
            explain what T is
            what does the word T mean
            definition of T
            what do you mean by T
            meaning of T
            what T means
            T in plain words
            what is T in simple words
            what does T stand for
            explain T to a student
            I do not understand T
            what are T
        """,
        "model": """
            which model is it
            what model was tested
            which network did you analyse
            name of the model
            how large is the model
            how many layers does the model have
            how many units per layer
            how many neurons are there in the model
            how many units does a layer have
            size of the model
            what is the hash of the model
            how many units in all
            how many layers
            how wide is a layer
        """,
        "task": """
            what is the task
            what was the model asked to do
            what is it about
            which task was it
            what does the model have to do
            which behaviour was studied
            what kind of problems does the model solve
            task description
            what counts as a right answer
        """,
        "accuracy": """
            how accurate is the model
            what is the accuracy
            how good is the model
            how often is the model right
            how many problems does the model get right
            how many answers are correct
            accuracy by operator
            is the model better at C or C
            how well does the model do on C
            accuracy on C
            how accurate is the model on C
            does the model make more mistakes on C
            how many C are right
            what share does it solve without ablation
            performance of the model unablated
            how well does the model perform
            is the model worse on large numbers
            accuracy on held-out records
            baseline accuracy
            success rate
            how many does it get wrong
            error rate
            task score
        """,
        "failures": """
            which records does the model fail on by itself
            show a problem that the model gets wrong
            what does the model get wrong without any ablation
            example of an unablated mistake
            which sums does the model get wrong
            give me some wrong answers of the intact model
            where does the model fail with nothing ablated
            show failures of the original model
            list mistakes the model makes on its own
            which problems are too hard for it
        """,
        "records": """
            how many records are there
            how many problems was the model tested with
            how many examples were used
            how many prompts did you use
            how big is the dataset
            how many records were held-out
            how many train records
            how many records are in the test split
            number of records
            sample size
            how many questions were asked overall
            how was the data split into train and held-out
            how many data points
        """,
        "range": """
            which range of numbers is asked
            how large are the numbers
            what numbers occur
            what is the largest operand
            smallest and largest number
            up to which number does it go
            which numbers does the model have to handle
            from where to where do the operands go
            number range
        """,
        "operators": """
            which operators are asked
            can it do multiplication
            can the model multiply
            can it divide
            does the model do division
            what about multiplication and division
            which operations were tested
            does it also multiply
            was division tested
            is it only addition
            are there multiplications
            which operators
            addition or subtraction
        """,
        "prompt": """
            what does a prompt look like
            show a prompt
            how is a question worded
            what is the template
            what is the input format
            give an example prompt
            how are the problems written
            format of the prompts
            what exactly is typed into the model
            sample input
        """,
        "basis": """
            what kind of unit is tested
            what is a unit here
            is it a neuron or an attention head
            are these MLP neurons or attention heads
            which basis was used
            did you test attention heads
            were attention heads searched
            what counts as a unit
            what is ablated
            are the units MLP channels
            did you look at attention too
            what type of component is it
            in which part of the network are the units
        """,
        "baseline": """
            what is a unit replaced with
            what is the baseline
            which baseline was used
            what did you set the unit to
            which value replaces the ablated unit
            how was the unit ablated
            what does switching off mean exactly
            why not zero ablation
            why did you not set it to zero
            was it zero or mean ablation
            how is a neuron switched off
            which replacement did you use
            why mean ablation
            why the mean
        """,
        "other-baseline": """
            does it hold with another baseline
            does the effect survive a different replacement
            was a second baseline tried
            does it depend on the baseline
            what happens with mean ablation instead
            is it robust to the choice of baseline
            same result under another replacement
            robustness to the baseline
        """,
        "in-range": """
            are the replaced values out-of-range
            are the replacement values out-of-distribution
            is the ablation off distribution
            are the replacements realistic
            how many values are out-of-range
            do the replaced values occur naturally
            are the replacements in range
        """,
        "phase": """
            where are units ablated
            at which positions are units replaced
            which phase
            is the prompt ablated too
            at which tokens was the unit ablated
            during the prompt or during generation
            was the ablation applied while reading the prompt
            when in the text is the unit switched off
        """,
        "seed": """
            what is the seed
            which random seed
            seed
            was more than one seed tried
            did you repeat it with other seeds
            how many seeds
            does it depend on the seed
        """,
        "thresholds": """
            which thresholds were set
            what are the settings
            what is the value of τ
            how large is α
            how high is the threshold
            which significance level
            which parameters did you use
            how big is ε
            what threshold was used
            τ
            configuration
            hyperparameters
        """,
        "splitter": """
            what is the splitter rule
            which rule separates D+ from D-
            how are D+ and D- defined
            how were the slices split
            how good is the splitter
            what is the MCC of the splitter
            what is the difference between D+ and D-
            what distinguishes D+ from D-
            what splits the records
            why this splitter
            on what is the split based
            how do you decide what is D+
        """,
        "proposer": """
            was a language model involved
            did an LLM propose the rules
            was an LLM used
            was GPT or Claude used
            who proposed the predicates
            where do the predicates come from
            how many predicates were proposed
            how many predicates were kept
            is any AI involved in the results
            were the explanations written by a language model
            did ChatGPT make this up
        """,
        "versions": """
            which versions was it made with
            what software was used
            which version of torch
            which libraries
            on which hardware did it run
            was a GPU used
            cpu or gpu
            which machine
            software versions
        """,
        "number-of-units": """
            how many units matter
            how many agonists are there
            how many neurons were found
            number of agonists
            how many of the units reach the threshold
            how many units are important
            how many are localized
            how many units are above the threshold
            how many did you find
            how many neurons are responsible
            count the agonists
        """,
        "not-ruled-out": """
            which units are not ruledout
            list the units that are not ruledout
            which units are localized but no agonists
            how many are not ruledout
            which other units might matter
            which units are borderline
            which candidates remain
            which units almost reach the threshold
            which neurons could still matter
        """,
        "layers": """
            which layer matters most
            which layer is the strongest
            in which layer are the units
            which layer is the most important
            is the first layer or the last layer more important
            compare the layers
            effect of whole layers
            where in the network are the agonists
            which layers matter
            do both layers matter
        """,
        "groups": """
            which groups were pruned
            how many groups were pruned
            show the pruned groups
            which groups of units were tested
            what was pruned
            how many units were pruned in groups
            which units were discarded together
            groups that were ruledout
        """,
        "attribution": """
            which units rank highest by attribution
            what is the top unit by attribution
            attribution ranking
            which unit has the highest EAP-IG score
            what does attribution say
            best units by attribution score
            does attribution agree
            which units did attribution rank first
        """,
        "search-kind": """
            which kind of search was it
            which search algorithm was used
            was it a guided or a cha search
            how did the search work
            was it exhaustive or guided
            which search method
            how were the units searched
            how does the search find units
            which method was used
            method
        """,
        "cost": """
            what did the search cost
            how many ablations were needed
            how many forward passes did it take
            how expensive was the search
            how many queries were asked
            how many group ablations
            how much cheaper than testing every unit
            computational cost
            how much compute
            how many example forwards
            was it cheaper than brute force
            how efficient is the search
        """,
        "time": """
            how long did it take
            how long did the run take
            runtime
            wall clock
            how many seconds did the search need
            how much time did it need
            how fast was it
            which stage took longest
            duration of the run
        """,
        "chance": """
            could the results be chance
            could this be chance
            is this just chance
            is it statistically significant
            are the results significant
            is this significant
            is that just luck
            are the findings noise
            how do you know it is not random
            do the units beat random units
            were random units tested as controls
            is it a coincidence
            can random units do the same
            what are the p-values
            how likely is it that this is a fluke
            did you run controls
            what about false positives
            how many controls were drawn
        """,
        "corrected": """
            was it corrected for multiple comparisons
            did you correct for multiple testing
            was a correction applied
            are the p-values corrected
            how did you deal with testing so many units
            is there a Bonferroni correction
            did you use Holm or Bonferroni
            you tested many units so some are significant by chance
            familywise error
            multiplicity
        """,
        "rules-shown": """
            how many rules are shown
            how many rules were learned and how many survived
            which rules are not shown and why
            how many rules passed
            how many rules failed
            which rules were rejected
            why are some rules not shown
            how many rules are significant
            how many rules were tried
            how many rules predict held-out flips
            which rules did not hold
        """,
        "selective": """
            which units are selective
            are the units selective
            how many units are selective
            is any unit selective
            do the units flip more on D+ than on D-
            are they specific
        """,
        "overlap": """
            do the units flip the same records
            how much do the units overlap
            do the agonists break the same sums
            what is the Jaccard index
            how many records are flipped by at least one unit
            union of the flips
            are the units redundant
            how many records do all units together flip
            do the found units share flips
        """,
        "limits": """
            what are the limits
            what are the limitations of this study
            what are the caveats
            what can this not show
            does it generalise
            what should I be careful about
            what does this not prove
            threats to validity
            what does the run not say
            how far can I trust this
            is this general
            can I trust the results
            weaknesses of the method
            are the estimates biased
            what is the catch
        """,
        "cause": """
            does this prove that a unit causes the answer
            is this causal
            is it correlation or causation
            does the unit compute the answer
            is the unit sufficient
            are the units sufficient
            is the unit necessary or sufficient
            is that causal evidence
            does U cause the answer
            is U sufficient
            does it follow that the neuron does the calculation
            does this show causation
            does ablation prove causality
            can we conclude that this neuron does the arithmetic
        """,
        "check": """
            how can I reproduce this
            how can I check this
            how can I verify the results
            how could somebody else check this
            how do I know that you did not make this up
            is it reproducible
            how can I replicate it
            how can the results be verified independently
            which command verifies it
            why should I believe you
            how can a reviewer check this
            can I rerun this on another machine
            how to export the evidence
            why should I trust you
        """,
        "next-steps": """
            what should be done next
            what next
            next steps
            what would you do next
            which experiment should I run now
            what is still to do
            how can I make the result stronger
            what would settle it
            what further experiments
            how could this be improved
            what do you recommend
            which analysis would help
        """,
        "training": """
            what data was the model trained on
            how was the model trained
            what is the training data of the model
            which dataset was used to train it
            how long was the model trained
            what was the training loss
            does U still matter after fine-tuning
            what happens when I fine-tune the model
            when did U emerge during training
            at which training step did U appear
            will it change with more training
            who trained the model
            did the model learn this from textbooks
            which optimizer was used
            what is the learning rate
        """,
        "elsewhere": """
            and for another model
            does it hold for other models
            is it the same in GPT-2
            is it the same in larger models
            what about Llama
            does GPT-4 have such neurons
            which neurons matter in SmolLM2
            is there a U in another model
            do bigger models do the same
            does U exist in GPT-4
            how does it compare with GPT-4
            would it work in Pythia or Gemma or Qwen or Mistral
        """,
        "other-tasks": """
            does it hold for other tasks
            is U involved in language
            does U matter for translation
            is U involved in refusing harmful requests
            does U store facts
            does U do multiplication
            does U handle division
            is U used for grammar
            does U matter for code
            what does U do in English text
            is U toxic
            does U know about sentiment
            does the unit matter for other languages
            can it write poems
            does U multiply
        """,
        "people": """
            do children make the same mistakes
            do humans calculate like this
            is it like the human brain
            does the brain have such neurons
            do people make the same errors
            is this how students add
            is U conscious
            does the model understand numbers
            does U think
            is the model intelligent
        """,
        "money": """
            what did the electricity cost
            how much money did it cost
            how much energy was used
            what is the carbon footprint
            how many dollars
            how many euros did the run cost
            how much power did the machine use
            how much CO2
        """,
        "help": """
            help
            what can I ask
            what can you do
            what questions can you answer
            what do you know
            how do I use this
            commands
        """,
        "instead": """
            what about U
            and U
            how about U
            and U on those
            and for U
            U instead
            and what about U then
            same for U
        """,
    }.items()
}
"""By kind."""
