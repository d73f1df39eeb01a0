"""The style sheet: where the panes stand in each arrangement."""

STYLE = """
Screen { layers: base; }
.title { text-style: bold; }
.status { background: $panel; }
#runs, #comparison, #ledger, #form { height: 1fr; }
#repair { height: 1fr; scrollbar-gutter: stable; scrollbar-size-vertical: 1; }
#making { background: $panel; }
#hypothesis { height: 45%; max-height: 9; border-top: solid $primary; }
#upper { height: 3fr; }
#chat { height: 2fr; min-height: 5; }
#log { height: 1fr; scrollbar-size-vertical: 1; }
#prompt { height: 1; }
#prompt Static { width: 2; }
#ask { width: 1fr; }
#tree, #rules, #figures { width: 1fr; height: 1fr; }
#tree { scrollbar-size-vertical: 1; overflow-x: hidden; }
#card { width: 44%; height: 1fr; scrollbar-size-vertical: 1; }
.columns #tree, .columns #rules, .columns #figures, .columns #card { border: round $primary; }
.columns #tree:focus, .columns #rules:focus, .columns #figures:focus, .columns #card:focus { border: round $accent; }
.tabbed #card, .single #card, .maximised #card { width: 1fr; }
.tabbed #chat, .columns #chat { border-top: solid $primary; }
.tabbed.talking #upper { height: 2fr; }
.tabbed.talking #chat { height: 3fr; }
.single #upper, .single #chat, .maximised #upper, .maximised #chat { height: 1fr; }
.field { height: 1; }
.field .name { width: 18; }
.field Input, .field Select { width: 28; }
.field .hint { width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; padding-left: 1; }
.single .field .name { width: 16; }
ModalScreen { align: center middle; }
.popup {
    width: auto; max-width: 90%; min-width: 36; height: auto; max-height: 90%;
    padding: 1 2; background: $surface; border: round $accent;
}
.popup.tall { width: 90%; height: 90%; }
.popup Static { width: auto; max-width: 100%; }
.popup.tall Static { width: 1fr; }
"""
