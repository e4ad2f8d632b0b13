// Texts of an owner's page, by language; `{x}` is a placeholder. The browser's settings choose the language.

const TEXTS = {
  "en": {
    "incomplete": "Data of this time span is incomplete.", "loss_one": "{n} loss recorded", "loss_other": "{n} losses recorded",
    "skip": "To the numbers", "change": "Change {noun}", "choose": "Choose a {noun}", "loading": "Loading …", "again": "Try again",
    "signIn": "Sign in", "token": "Your token", "show": "Show my numbers", "stay": "Stay signed in on this device",
    "tokenHint": "It was sent to you as a link or a long line of letters. The page keeps it until you close this tab.",
    "whose": "These numbers are for the {noun}’s owner.", "refused": "The server doesn’t take your token: {why}.",
    "span": "Time span", "numbers": "Numbers", "hourly": "Hour by hour", "measures": "What the chart shows", "table": "As a table",
    "tableLabel": "Hours as a table", "operator": "Operator’s page", "signOut": "Sign out", "close": "Close", "search": "Name, place or id",
    "found": "{n} found", "first": "; the first {n} are shown", "noneFound": "No match.", "more": "Show more", "fewer": "Show fewer",
    "listLabel": "{title}, all", "others": "Other dashboards", "empty": "Nothing in the last {window}.",
    "more_than": "more than", "less_than": "less than", "as": "as", "same": "same", "versus": "vs", "none": "none",
    "before": "the {window} before", "week": "a week ago", "nothing": "Nothing earlier to compare with",
    "last": "Last {window}", "dashed": "; dashed: a day earlier", "earlier": "; a day earlier {value}", "soFar": "so far",
    "chart": "{label} hour by hour, last {window}.", "most": "Most: {value}, {hour}.", "noneAtAll": "None.", "below": "The table below has all hours.",
    "hour": "Hour", "caption": "{labels} hour by hour", "moved": "Past numbers have changed: {what}.", "late": "{label} came late, or were corrected or cancelled.",
    "hoursMore": "and {hours} more", "gotIt": "Got it", "heard": "As of {time}, last {window}: {what}.", "asOf": "As of", "upTo": "changes up to", "now": "a moment ago",
    "old": " They are {age} old.", "away": "No connection to the server: these numbers may be out of date.{old} Trying again …",
    "stale": "Newer numbers should have arrived by now.{old}", "noneYet": "No numbers yet", "cannot": "The numbers can’t be shown",
    "soon": "This page shows the first numbers as soon as they arrive.", "noBoard": "This project declares no dashboard.",
    "zone": "Times in {zone}", "myClock": "Show my time", "theirClock": "Show local time",
    "busy": "Ticks follow each other too quickly.", "silent": "The server doesn’t answer.", "brokeOff": "The server’s answer was cut off."
  },
  "de": {
    "incomplete": "Die Daten dieses Zeitraums sind unvollständig.", "loss_one": "{n} Verlust erfasst", "loss_other": "{n} Verluste erfasst",
    "skip": "Zu den Zahlen", "change": "{noun} wechseln", "choose": "{noun} wählen", "loading": "Lädt …", "again": "Erneut versuchen",
    "signIn": "Anmelden", "token": "Ihr Token", "show": "Meine Zahlen zeigen", "stay": "Auf diesem Gerät angemeldet bleiben",
    "tokenHint": "Sie haben es als Link oder als lange Zeichenfolge erhalten. Es wird gespeichert, bis Sie diesen Tab schließen.",
    "whose": "Diese Zahlen sind nur für Berechtigte ({noun}).", "refused": "Der Server nimmt Ihr Token nicht an: {why}.",
    "span": "Zeitraum", "numbers": "Zahlen", "hourly": "Stunde für Stunde", "measures": "Was das Diagramm zeigt", "table": "Als Tabelle",
    "tableLabel": "Stunden als Tabelle", "operator": "Betriebsseite", "signOut": "Abmelden", "close": "Schließen", "search": "Name, Ort oder ID",
    "found": "{n} gefunden", "first": "; die ersten {n} werden gezeigt", "noneFound": "Kein Treffer.", "more": "Mehr zeigen", "fewer": "Weniger zeigen",
    "listLabel": "{title}, alle", "others": "Weitere Dashboards", "empty": "Nichts im Zeitraum: {window}.",
    "more_than": "mehr", "less_than": "weniger", "as": "wie", "same": "gleich", "versus": "ggü.", "none": "nichts",
    "before": "Zeitraum davor ({window})", "week": "Vorwoche", "nothing": "Kein früherer Zeitraum zum Vergleichen",
    "last": "Zeitraum: {window}", "dashed": "; gestrichelt: ein Tag zuvor", "earlier": "; ein Tag zuvor {value}", "soFar": "bisher",
    "chart": "{label} Stunde für Stunde, Zeitraum: {window}.", "most": "Am meisten: {value}, {hour}.", "noneAtAll": "Keine.", "below": "Die Tabelle darunter enthält alle Stunden.",
    "hour": "Stunde", "caption": "{labels} Stunde für Stunde", "moved": "Frühere Zahlen haben sich geändert: {what}.", "late": "{label}: später eingetroffen, korrigiert oder storniert.",
    "hoursMore": "und weitere: {hours}", "gotIt": "Verstanden", "heard": "Stand {time}, Zeitraum {window}: {what}.", "asOf": "Stand", "upTo": "Änderungen bis", "now": "gerade eben",
    "old": " Alter: {age}.", "away": "Keine Verbindung zum Server: Die Zahlen können sich inzwischen geändert haben.{old} Neuer Versuch …",
    "stale": "Neuere Zahlen sind überfällig.{old}", "noneYet": "Noch keine Zahlen", "cannot": "Die Zahlen können nicht gezeigt werden",
    "soon": "Diese Seite zeigt die ersten, sobald sie da sind.", "noBoard": "Dieses Projekt deklariert kein Dashboard.",
    "zone": "Zeiten in {zone}", "myClock": "Meine Uhrzeit zeigen", "theirClock": "Ortszeit zeigen",
    "busy": "Neue Stände folgen zu schnell aufeinander.", "silent": "Der Server antwortet nicht.", "brokeOff": "Die Antwort des Servers brach ab."
  },
  "es": {
    "incomplete": "Los datos de este periodo están incompletos.", "loss_one": "{n} pérdida registrada", "loss_other": "{n} pérdidas registradas",
    "skip": "Ir a los datos", "change": "Cambiar {noun}", "choose": "Elegir {noun}", "loading": "Cargando…", "again": "Reintentar",
    "signIn": "Iniciar sesión", "token": "Su token", "show": "Ver mis datos", "stay": "Mantener la sesión en este dispositivo",
    "tokenHint": "Lo recibió como un enlace o una larga línea de letras. Se guarda hasta que cierre esta pestaña.",
    "whose": "Estos datos son solo para titulares ({noun}).", "refused": "El servidor no acepta su token: {why}.",
    "span": "Periodo", "numbers": "Datos", "hourly": "Hora a hora", "measures": "Qué muestra el gráfico", "table": "Como tabla",
    "tableLabel": "Horas en una tabla", "operator": "Página de operación", "signOut": "Cerrar sesión", "close": "Cerrar", "search": "Nombre, lugar o id",
    "found": "{n} encontrados", "first": "; se muestran los primeros {n}", "noneFound": "Sin resultados.", "more": "Ver más", "fewer": "Ver menos",
    "listLabel": "{title}, todos", "others": "Otros paneles", "empty": "Nada en este periodo: {window}.",
    "more_than": "más", "less_than": "menos", "as": "como", "same": "igual", "versus": "frente a", "none": "nada",
    "before": "el periodo anterior ({window})", "week": "hace una semana", "nothing": "No hay nada anterior con que comparar",
    "last": "Periodo: {window}", "dashed": "; línea discontinua: un día antes", "earlier": "; un día antes {value}", "soFar": "hasta ahora",
    "chart": "{label} hora a hora, periodo: {window}.", "most": "Máximo: {value}, {hour}.", "noneAtAll": "Ninguno.", "below": "La tabla de abajo contiene todas las horas.",
    "hour": "Hora", "caption": "{labels} hora a hora", "moved": "Los datos pasados han cambiado: {what}.", "late": "{label}: llegaron tarde, o se corrigieron o cancelaron.",
    "hoursMore": "y otras {hours}", "gotIt": "Entendido", "heard": "A las {time}, periodo {window}: {what}.", "asOf": "A las", "upTo": "cambios hasta", "now": "hace un momento",
    "old": " Tienen {age}.", "away": "Sin conexión con el servidor: los datos pueden haber cambiado.{old} Reintentando…",
    "stale": "Ya deberían haber llegado datos más recientes.{old}", "noneYet": "Aún no hay datos", "cannot": "No se pueden mostrar los datos",
    "soon": "Esta página mostrará los primeros en cuanto lleguen.", "noBoard": "Este proyecto no declara ningún panel.",
    "zone": "Horas de {zone}", "myClock": "Ver mi hora", "theirClock": "Ver la hora local",
    "busy": "Los datos cambian demasiado rápido.", "silent": "El servidor no responde.", "brokeOff": "La respuesta del servidor se interrumpió."
  },
  "fr": {
    "incomplete": "Les données de cette période sont incomplètes.", "loss_one": "{n} perte enregistrée", "loss_other": "{n} pertes enregistrées",
    "skip": "Aller aux chiffres", "change": "Changer de {noun}", "choose": "Choisir : {noun}", "loading": "Chargement…", "again": "Réessayer",
    "signIn": "Se connecter", "token": "Votre jeton", "show": "Voir mes chiffres", "stay": "Rester connecté sur cet appareil",
    "tokenHint": "Vous l’avez reçu sous forme de lien ou d’une longue suite de lettres. Il est conservé jusqu’à la fermeture de cet onglet.",
    "whose": "Ces chiffres sont réservés aux titulaires ({noun}).", "refused": "Le serveur refuse votre jeton : {why}.",
    "span": "Période", "numbers": "Chiffres", "hourly": "Heure par heure", "measures": "Ce que montre le graphique", "table": "En tableau",
    "tableLabel": "Les heures en tableau", "operator": "Page d’exploitation", "signOut": "Se déconnecter", "close": "Fermer", "search": "Nom, lieu ou identifiant",
    "found": "{n} trouvés", "first": " ; les {n} premiers sont affichés", "noneFound": "Aucun résultat.", "more": "Afficher plus", "fewer": "Afficher moins",
    "listLabel": "{title}, tous", "others": "Autres tableaux de bord", "empty": "Rien sur cette période : {window}.",
    "more_than": "de plus", "less_than": "de moins", "as": "comme", "same": "égal", "versus": "par rapport à", "none": "rien",
    "before": "la période précédente ({window})", "week": "la semaine précédente", "nothing": "Rien d’antérieur à comparer",
    "last": "Période : {window}", "dashed": " ; en pointillés : la veille", "earlier": " ; la veille {value}", "soFar": "en cours",
    "chart": "{label} heure par heure, période : {window}.", "most": "Maximum : {value}, {hour}.", "noneAtAll": "Aucun.", "below": "Le tableau ci-dessous contient toutes les heures.",
    "hour": "Heure", "caption": "{labels} heure par heure", "moved": "Des chiffres passés ont changé : {what}.", "late": "{label} : arrivées en retard, corrections ou annulations.",
    "hoursMore": "et {hours} de plus", "gotIt": "Compris", "heard": "À {time}, période {window} : {what}.", "asOf": "À", "upTo": "modifications jusqu’à", "now": "à l’instant",
    "old": " Ils ont {age}.", "away": "Pas de connexion au serveur : ces chiffres ont pu changer.{old} Nouvel essai…",
    "stale": "Des chiffres plus récents devraient être arrivés.{old}", "noneYet": "Pas encore de chiffres", "cannot": "Impossible d’afficher les chiffres",
    "soon": "Cette page affichera les premiers dès leur arrivée.", "noBoard": "Ce projet ne déclare aucun tableau de bord.",
    "zone": "Heures de {zone}", "myClock": "Afficher mon heure", "theirClock": "Afficher l’heure locale",
    "busy": "Les chiffres changent trop vite.", "silent": "Le serveur ne répond pas.", "brokeOff": "La réponse du serveur s’est interrompue."
  }
};

const wished = navigator.languages?.length ? navigator.languages : [navigator.language || "en"];
// A page that exists only in English has `data-language` in its first line.
const english = document.documentElement.dataset.language === "en";
const chosen = english ? undefined : wished.find((one) => one.slice(0, 2).toLowerCase() in TEXTS);

export const language = chosen ? chosen.slice(0, 2).toLowerCase() : "en";
// The locale of numbers and times: the reader's region if the page has their language, else an English one.
export const locale = chosen ?? (wished.find((one) => one.slice(0, 2).toLowerCase() === "en") || "en");

// Fill the placeholders of a text such as "Change {noun}".
export const filled = (text, values = {}) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

export const text = (key, values) => filled(TEXTS[language][key], values);

// Return a declared text in the reader's language; else without a language, in English, or in any.
export const spoken = (words) => words?.[language] ?? words?.[""] ?? words?.en ?? Object.values(words ?? {})[0] ?? "";

// Write the page's own texts: `data-text` is the key of the content, `data-label` of the ARIA label.
export function speak(values) {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = text(element.dataset.text, values);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text(element.dataset.label, values));
}
